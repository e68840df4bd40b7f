import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import type { ModelExchange } from '../../record/model-account.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import type { Upstream } from '../answer.ts';
import { GatewayRefusal } from '../room.ts';
import { Losses } from '../translation/losses.ts';
import { isObject, type JsonObject } from '../wires/lenient.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type CanonicalRequest, canonicalRequest, withoutVolatile } from './canonical-request.ts';

export type Role = ModelExchange['role'];

/** Recorded exchanges with models, by the trials that made them. */
export interface Cassette {
  /** What it was made of, for people: `batch_…`, or a file. */
  name: string;
  trials: readonly RecordedTrial[];
}

/** Says which trial of a suite a trial is, whatever its batch. */
export interface TrialLabel {
  case: string;
  variant: string;
  ordinal: number;
}

export interface RecordedTrial {
  label: TrialLabel;
  /** In the order in which they began. Read when they are first needed. */
  exchanges(): readonly RecordedExchange[];
}

export interface RecordedExchange {
  /** Its place among the exchanges of its trial, from 1. */
  number: number;
  role: Role;
  model: string;
  /** The wire of the model. */
  wire: Wire;
  /** The wire of the client, if the request was translated before it was recorded. */
  from: Wire | undefined;
  request: CanonicalRequest;
  answer(): RecordedAnswer;
}

export interface RecordedAnswer {
  wire: Wire;
  status: number;
  /** As the model gave it: JSON, or a stream of events. */
  body: Buffer;
}

/** A trial, as messages name it. */
export function trialName({ case: caseName, variant, ordinal }: TrialLabel): string {
  return `${caseName} · ${variant} #${ordinal}`;
}

/** Hashes of a request. Two requests with the same hash are equal in that respect. */
export interface RequestKeys {
  /** All of it. */
  exact: string;
  /** All of it, without volatile shapes. */
  known: string;
  /** The conversation alone, without volatile shapes: what was said, called and returned. */
  conversation: string;
}

/** @param model the name that the harness was given for its model, which it may repeat in its texts */
export function keysOf(request: CanonicalRequest, role: Role, model: string): RequestKeys {
  const { tools, options } = request;
  const turns = steadyTurns(request, role);
  return {
    exact: keyOf(request),
    known: keyOf({ ...steadyParts(request, model), turns }),
    // A request without tools, such as one for a title, asks for something else.
    conversation: keyOf({ turns, hasTools: tools.length > 0, hasFormat: options.includes('"format"') }),
  };
}

/**
 * The turns without volatile shapes. The prompts of judges and simulated users are made of outputs, so shapes
 * are removed there too. The prompt of an agent is a person's text, and stays.
 */
export function steadyTurns({ turns }: CanonicalRequest, role: Role): CanonicalRequest['turns'] {
  return turns.map((turn) => {
    if (turn.by === 'model') return turn;
    const said = role === 'agent' ? turn.said : withoutVolatile(turn.said);
    return { ...turn, said, results: turn.results.map(withoutVolatile) };
  });
}

/** The parts beside the conversation. */
export function steadyParts({ context, tools, options }: CanonicalRequest, model: string) {
  const steady = (text: string) => withoutVolatile(withoutName(text, model));
  return {
    context: context.map(steady),
    tools: tools.map(({ name, definition }) => ({ name, definition: steady(definition) })),
    options,
  };
}

function withoutName(text: string, model: string): string {
  return model === '' ? text : text.replaceAll(model, '<model>');
}

function keyOf(value: unknown): string {
  return hash('sha256', canonicalJson(value));
}

/**
 * An exchange of a record, or why it cannot be replayed.
 *
 * @param read the content of a blob; undefined if there is none
 */
export function recordedExchange(
  exchange: ModelExchange,
  number: number,
  read: (sha256: string) => Buffer | undefined,
): RecordedExchange | string {
  const { role, model, status = 0, requestBody, responseBody, translation } = exchange;
  const wire = wireNamed(exchange.wire);
  if (!wire) return `its wire ${exchange.wire} is not supported`;
  const isRefusal = [400, 413, 422].includes(status);
  if (exchange.failure !== undefined && !isRefusal) return exchange.failure;
  if (requestBody === undefined || responseBody === undefined) return 'its bodies were not kept';
  const sent = read(requestBody);
  const got = read(responseBody);
  if (!sent || !got) return 'its bodies are no longer in the ledger';
  if (!isUtf8(got) || /\n\[cut: \d+ of \d+ bytes\]$/.test(got.subarray(-80).toString('latin1')))
    return 'its answer was not kept as a whole';
  let request: RecordedExchange['request'];
  try {
    const body = parseForeignJson(sent.toString('utf8'));
    if (!isObject(body)) return 'its request is not a JSON object';
    request = canonicalRequest(wireTable[wire].translation.readRequest(body, new Losses('lenient', model)));
  } catch (error) {
    return messageOf(error);
  }
  const from = translation && wireNamed(translation.from);
  const answer = () => ({ wire, status, body: got });
  return { number, role, model, wire, from, request, answer };
}

function wireNamed(name: string): Wire | undefined {
  return wires.find((wire) => wire === name);
}

/** Counts of tokens are estimated in a replay. */
export function isCount({ wire, path }: ModelExchange): boolean {
  const known = wireNamed(wire);
  if (!known) return false;
  const { targetOf, endpoints } = wireTable[known];
  if (targetOf) return targetOf(path.split('?', 1)[0] ?? '')?.purpose === 'count';
  return endpoints.some((endpoint) => endpoint.writeCount && path.split('?', 1)[0] === endpoint.path);
}

/** No recorded exchange answers a request. */
export class ReplayMiss extends GatewayRefusal {
  /** What a person needs to know. The client does not get this: it quotes what was recorded. */
  readonly detail: string;
  /** What that person can do. */
  readonly advice: string;

  constructor(detail: string, advice = `${recordAgain.slice(0, -1)}, or use --on-miss live.`) {
    super(400, 'REPLAY_MISS', 'there is no recorded answer for this request');
    this.detail = detail;
    this.advice = advice;
  }
}

export const recordAgain = 'The harness, the case or the sandbox has changed since. Record it again.';

/**
 * What answers a request to one model of one session, in the request's wire: a recorded answer, or the live
 * model. Throws a ReplayMiss if neither may.
 */
export type Recording = (asked: AskedRequest) => Upstream | 'live';

/** A request of a client, as its recorded answer is looked for. */
export interface AskedRequest {
  role: Role;
  wire: Wire;
  json: JsonObject;
  bytes: number;
  streamed: boolean;
  purpose: 'answer' | 'count';
  /** Its place among the exchanges of its trial, from 1. */
  number: number;
}
