import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { answerError, answerJson, pass } from './answer.ts';
import { exchange } from './exchange.ts';
import type { ModelRole } from './gateway.ts';
import { judgeMembers } from './judge-members.ts';
import type { ExchangeParts } from './model-ask.ts';
import { clientGone, Refusal } from './refusal.ts';
import { bytesForUpstream, readBody, readRequestBody } from './request-body.ts';
import { requireReadable, toUpstream } from './request-head.ts';
import type { RoleModels } from './role-models.ts';
import type { Hold, Share } from './room.ts';
import type { Route } from './route.ts';
import { newExchange } from './session-record.ts';
import type { Tokens } from './tokens.ts';
import { wireTable } from './wires/wire-table.ts';

export interface ForwardParts extends ExchangeParts {
  tokens: Tokens;
  models: RoleModels;
  share: Share;
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
    const told = answer.exhausted ? { ...answer.headers, 'x-should-retry': 'false' } : answer.headers;
    await pass({ ...answer, headers: told }, response, { stopping, clock: parts.clock });
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
  { wire, purpose, path }: ModelRoute,
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
  let asked = '';
  let streamed = false;
  const judged = () => {
    const body = readRequestBody(received);
    asked = body.model.slice(0, 200);
    streamed = body.streamed;
    const model = parts.models.named(role, body.model);
    if (!model.wires.includes(wire)) {
      const spoken = model.wires.join(', ');
      throw new Refusal(400, 'WIRE_NOT_SPOKEN', `the model ${model.name} speaks ${spoken}, not ${wire}`);
    }
    judgeMembers(body.json, wire, model);
    return { model, body: bytesForUpstream(body, wire, model.upstreamName), weight: body.weight };
  };
  let model: ReturnType<typeof judged>;
  try {
    model = judged();
  } catch (error) {
    const { message, status } =
      error instanceof Refusal ? error : new Refusal(400, 'BODY_INVALID', String(error));
    const told = newExchange(parts.clock, {
      role,
      model: asked,
      wire,
      path,
      streamed,
      requestBytes: received.length,
    });
    parts.record.addRefused({ ...told, status, failure: message });
    throw error;
  }
  const request = { wire, method: 'POST', path, headers: toUpstream(headers), body: model.body };
  owned.move();
  return exchange(
    parts,
    {
      ...{ from: 'sandbox', role, model: model.model, purpose, streamed, request, received, hold },
      weight: model.weight,
    },
    signal,
  );
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
    answerJson(response, 200, wireTable[wire].modelList(models.namesOf(role)));
    return;
  }
  models.named(role, name);
  answerJson(response, 200, wireTable[wire].modelEntry(name));
}

function roleOf(tokens: Tokens, headers: IncomingHttpHeaders): ModelRole {
  const role = tokens.roleOf(headers);
  if (role) return role;
  throw new Refusal(401, 'INVALID_API_KEY', "the request does not carry this trial's token");
}
