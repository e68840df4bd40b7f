import { hash } from 'node:crypto';
import { canonicalJson } from '../../base/canonical-json.ts';
import type { ModelExchange } from '../../record/model-account.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { CanonicalRequest } from './canonical-request.ts';
import { withoutVolatile } from './volatile.ts';

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
