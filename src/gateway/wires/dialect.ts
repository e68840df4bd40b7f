import type { Usage } from '../../contract/report.ts';
import { parseForeignJson } from '../../parse-json.ts';
import type { Accepted } from './accepted.ts';

/** What the gateway must know of one wire. Bodies are parsed JSON from outside: any shape may come. */
export interface Dialect {
  /** The error body that the wire's clients understand. `code` is lower-case. */
  errorBody(status: number, code: string, message: string): object;
  /** Reads an answer that came in one piece. */
  readAnswer(body: unknown): Told;
  /** Reads an answer that comes as a stream. */
  readStream(): StreamReader;
  accepted: Accepted;
  /** Names a tool for people where it would run at the model's provider. */
  hostedTool(tool: unknown): string | undefined;
}

export interface StreamReader {
  event(data: string): void;
  /** What has been told so far. */
  told(): Told;
}

/** What an answer told of itself. */
export interface Told {
  /** Without a cost. What was not told is left out. */
  usage: Usage;
  answeredBy: string | undefined;
  /** Whether it came to its proper end. */
  complete: boolean;
  /** The error that an answer of status 200 carried. */
  failure: string | undefined;
  /** That error is the model's own, by its code: nothing that was asked brings it about. */
  overloaded?: true | undefined;
}

/** The codes and types of errors by which the makers' own APIs say that they are out of order. */
const ownErrors: ReadonlySet<unknown> = new Set([
  ...['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error'],
  ...['server_error', 'rate_limit_exceeded', 'insufficient_quota'],
]);

/** True of an error object that tells of the model's own trouble. Some servers have an HTTP status for a code. */
export function tellsOverload(error: unknown): true | undefined {
  const isOwn = [member(error, 'code'), member(error, 'type')].some(
    (code) => ownErrors.has(code) || Number(code) === 429 || Number(code) >= 500,
  );
  return isOwn || undefined;
}

export type JsonObject = Record<string, unknown>;

/** A member of what may be an object. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A number of tokens; undefined for what cannot be one, so that a confused upstream makes a number unknown and not wrong. */
export function tokens(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined;
}

/** Usage with its total, and without the members that are not known. Input tokens are all of the prompt's. */
export function usageOf(known: {
  inputTokens: number | undefined;
  outputTokens: number | undefined;
  cacheReadTokens: number | undefined;
  cacheWriteTokens: number | undefined;
}): Usage {
  const { inputTokens, outputTokens } = known;
  const totalTokens =
    inputTokens === undefined || outputTokens === undefined ? undefined : inputTokens + outputTokens;
  const all = Object.entries({ ...known, totalTokens });
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/** A tool's type, for people. */
export function toolType(tool: unknown): string {
  return text(member(tool, 'type')) ?? 'of an unknown type';
}

/** JSON of a stream's event; undefined where it is none. */
export function parsed(data: string): unknown {
  try {
    return parseForeignJson(data);
  } catch {
    // Half an event, garbage, or more than this process has room for: it tells nothing, and goes on to the client as it is.
    return undefined;
  }
}
