import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { type Wire, wires } from '../suite/model-config.ts';
import { answerError, answerJson, pass } from './answer.ts';
import { type ExchangeParts, exchange } from './exchange.ts';
import type { ModelExchange, ModelRole, Tokens } from './gateway.ts';
import { checkMembers } from './members.ts';
import { ReplayMiss } from './replay/cassette.ts';
import { bytesForUpstream, type ModelRequestBody, readBody, readRequestBody } from './request-body.ts';
import { clientGone, GatewayRefusal, type Hold, type Share } from './room.ts';
import type { Route } from './route.ts';
import type { RoleModels, ServedModel } from './served-model.ts';
import { newExchange, type SessionRecord } from './session-record.ts';
import { estimatedCount, exchangeTranslationOf, translateRequest } from './translation/translate-answer.ts';
import { beginningOf } from './upstream-http.ts';
import { words } from './wires/lenient.ts';
import type { PathTarget } from './wires/wire-descriptor.ts';
import { allWires, wireTable } from './wires/wire-table.ts';

export interface ForwardParts extends ExchangeParts {
  tokens: Tokens;
  models: RoleModels;
  share: Share;
  /** Called when a replayed model has no answer. */
  missed: Missed;
}

type ModelRoute = Extract<Route, { to: 'model' }>;
type ListRoute = Extract<Route, { to: 'models' }>;

/**
 * Forwards one request of the sandbox to its model, and returns the answer. Never rejects: every failure is
 * answered in the wire's own shape.
 */
export async function forward(
  parts: ForwardParts,
  route: ModelRoute,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { headers } = request;
  const stopping = new AbortController();
  const { signal } = stopping;
  let gone = false;
  const leave = () => {
    gone = true;
    stopping.abort(clientGone());
  };
  response.once('close', leave);
  try {
    const role = roleOf(parts.tokens, headers);
    requireReadable(headers);
    using owned = new DisposableStack();
    const hold = owned.use(parts.share.hold());
    const received = await readBody(request, hold, signal);
    const answer = await ask(parts, route, role, { headers, received, hold, owned }, signal);
    const answerHeaders = answer.exhausted
      ? { ...answer.headers, 'x-should-retry': 'false' }
      : answer.headers;
    // Rejects if it fails before its first bytes.
    const body = answer.headWaits ? (await beginningOf(answer.body, 'first')).whole() : answer.body;
    await pass({ ...answer, headers: answerHeaders, body }, response, { stopping, clock: parts.clock });
  } catch (error) {
    // A client that has disconnected gets no answer; the record shows it.
    if (!gone) answerError(response, route.wire, error);
  } finally {
    response.off('close', leave);
  }
}

/** Checks a request with a known token, and sends it. Records a refusal. */
async function ask(
  parts: ForwardParts,
  { wire, purpose, path, inPath }: ModelRoute,
  role: ModelRole,
  {
    headers,
    received,
    hold,
    owned,
  }: {
    headers: IncomingHttpHeaders;
    received: Buffer;
    hold: Hold;
    /** Releases what the request holds; once there is an exchange, the exchange does that. */
    owned: DisposableStack;
  },
  signal: AbortSignal,
) {
  let streamed = false;
  const addUnsent = (wire: Wire, model: string, ended: Partial<ModelExchange>) => {
    const begun = { role, model, wire, path, streamed, requestBytes: received.length };
    parts.record.addUnsent({ ...newExchange(parts.clock, begun), ...ended });
  };
  let asked = '';
  const prepare = () => {
    const body = readRequestBody(received, wire, inPath);
    asked = body.model.slice(0, 200);
    streamed = body.streamed;
    const named = parts.models.named(role, body.model);
    const model = answererOf(parts, named, { role, wire, body, purpose });
    // No server reads a request that a recording answers.
    if (model === named || model === named.live) checkMembers(body.json, wire, model);
    const { weight } = body;
    if (model.wires.includes(wire)) {
      const bytes = bytesForUpstream(body, wire, model.upstreamName);
      return { model, weight, wire, body: bytes, path: inPath ? pathOf(wire, model, inPath) : path };
    }
    const translated = translateRequest(body.json, wire, { model, streamed, purpose });
    const { to, sent } = translated;
    return { model, weight, wire: to, path: sent?.path ?? path, body: sent?.body ?? received, translated };
  };
  let model: ReturnType<typeof prepare>;
  try {
    model = prepare();
  } catch (error) {
    const { message, status } =
      error instanceof GatewayRefusal ? error : new GatewayRefusal(400, 'BODY_INVALID', String(error));
    addUnsent(wire, asked, { status, failure: error instanceof ReplayMiss ? error.detail : message });
    throw error;
  }
  const { translated, ...read } = model;
  if (translated && !translated.sent) {
    translated.estimated = true;
    const answer = estimatedCount(wire, translated.estimate);
    const translation = exchangeTranslationOf(translated);
    addUnsent(read.wire, read.model.name, { status: answer.status, failure: undefined, translation });
    return { ...answer, exhausted: false };
  }
  const ownHeaders = translated ? wireTable[read.wire].headers : {};
  const request = {
    wire: read.wire,
    method: 'POST',
    path: read.path,
    body: read.body,
    headers: { ...toUpstream(headers, { isTranslated: translated !== undefined }), ...ownHeaders },
  };
  owned.move();
  return exchange(
    parts,
    {
      from: 'sandbox',
      role,
      model: read.model,
      purpose,
      streamed,
      request,
      hold,
      translated,
      received: translated ? read.body : received,
      weight: read.weight,
    },
    signal,
  );
}

/** The path to a model on a wire whose paths name it. */
function pathOf(wire: Wire, { upstreamName }: ServedModel, { purpose, streamed }: PathTarget): string {
  const { translation } = wireTable[wire];
  if (purpose === 'answer') return translation.path(upstreamName, streamed);
  return translation.count?.path(upstreamName) ?? '';
}

/** Answers `/v1/models` and `/v1/models/NAME` with the models that the token's role may use. */
export function answerModels(
  { tokens, models }: Pick<ForwardParts, 'tokens' | 'models'>,
  { wire, name }: ListRoute,
  { headers }: IncomingMessage,
  response: ServerResponse,
): void {
  const role = roleOf(tokens, headers);
  if (name === undefined) {
    answerJson(response, 200, wireTable[wire].models.list(models.namesOf(role)));
    return;
  }
  models.named(role, name);
  answerJson(response, 200, wireTable[wire].models.entry(name));
}

function roleOf(tokens: Tokens, headers: IncomingHttpHeaders): ModelRole {
  const role = tokens.roleOf(headers);
  if (role) return role;
  throw new GatewayRefusal(401, 'INVALID_API_KEY', "the request does not carry this trial's token");
}

/** The allowed value of a header on the list. */
const shortText = /^[\x20-\x7e]{1,500}$/;
const word = /^[\w.:-]{1,200}$/;

/** What the providers' libraries say about themselves. */
const stainless = words(`
  arch async helper helper-method lang os package-version retry-count runtime runtime-version timeout`);

/**
 * The client's headers that reach its model, and the allowed values of each. All others are dropped, not
 * refused: clients send many that mean nothing to a model, and a dropped header does no harm. Credentials,
 * the host, and the body's length and type are set again.
 */
const passed: ReadonlyMap<string, RegExp> = new Map([
  ['accept', shortText],
  ['user-agent', shortText],
  ...allWires.flatMap(({ passedHeaders }) => Object.entries(passedHeaders)),
  ['idempotency-key', word],
  ['x-client-request-id', word],
  ...[...stainless].map((name): [string, RegExp] => [`x-stainless-${name}`, word]),
]);

/**
 * The same for a request that is translated. The other headers describe the client's wire and its library.
 */
const passedTranslated: ReadonlyMap<string, RegExp> = new Map([
  ['user-agent', shortText],
  ['idempotency-key', word],
]);

/** The headers of a model request that are sent to the upstream. */
function toUpstream(
  headers: IncomingHttpHeaders,
  { isTranslated }: { isTranslated: boolean },
): Record<string, string> {
  const sent: Record<string, string> = { 'content-type': 'application/json' };
  for (const [name, form] of isTranslated ? passedTranslated : passed) {
    const value = headers[name];
    if (typeof value === 'string' && form.test(value)) sent[name] = value;
  }
  return sent;
}

/**
 * Throws a {@link GatewayRefusal} (415) if the headers declare anything but JSON in UTF-8, because the
 * gateway reads the body as that.
 */
function requireReadable(headers: IncomingHttpHeaders): void {
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new GatewayRefusal(415, 'BODY_COMPRESSED', 'the gateway accepts no compressed bodies');
  }
  const type = headers['content-type'];
  if (type === undefined || /^application\/json\s*(;\s*charset=("utf-8"|utf-8)\s*)?$/i.test(type)) return;
  throw new GatewayRefusal(
    415,
    'BODY_TYPE_UNKNOWN',
    'the gateway accepts only bodies of the type application/json in UTF-8',
  );
}

/** Learns that a recorded model has no answer. */
export type Missed = (miss: OffsiteError) => void;

interface AskedOf {
  role: ModelRole;
  wire: Wire;
  body: ModelRequestBody;
  purpose: 'answer' | 'count';
}

/**
 * The model that answers a request: the asked one, its recording in any wire, or the live model behind that.
 * If there is no recorded answer, calls `missed` with what differs and throws a {@link ReplayMiss}.
 */
export function answererOf(
  { record, missed }: { record: SessionRecord; missed: Missed },
  model: ServedModel,
  { role, wire, body, purpose }: AskedOf,
): ServedModel {
  const { recording, live } = model;
  if (!recording) return model;
  const { json, bytes, streamed } = body;
  const number = record.entries.length + 1;
  try {
    const upstream = recording({ role, wire, json, streamed, purpose, number, bytes: bytes.length });
    if (upstream !== 'live') return { ...model, wires, upstream, recording: undefined };
    if (!live) throw new Error('the recording names a live model, and there is none');
    return live;
  } catch (error) {
    if (error instanceof ReplayMiss) missed(inputError('REPLAY_MISS', error.detail, { hint: error.advice }));
    throw error;
  }
}
