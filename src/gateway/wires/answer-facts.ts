import type { Usage } from '../../contract/report.ts';
import { anything, object } from './lenient.ts';

/** What an answer says about itself. */
export interface AnswerFacts {
  /** Without a cost. What the answer does not tell is left out. */
  usage: Usage;
  answeredBy: string | undefined;
  /** Whether it came to its proper end. */
  complete: boolean;
  /** The error that an answer of status 200 carried. */
  failure: string | undefined;
  /** By its code, the error is the model's own: no request causes it. */
  overloaded?: true | undefined;
}

export interface StreamReader {
  event(data: string): void;
  /** What is known so far. */
  facts(): AnswerFacts;
}

/** The facts of a stream that has not begun. */
export function noFacts(): AnswerFacts {
  return { usage: {}, answeredBy: undefined, complete: false, failure: undefined };
}

/** The codes and types of errors by which the makers' own APIs say that they are out of order. */
const ownErrors: ReadonlySet<unknown> = new Set([
  ...['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error'],
  ...['server_error', 'rate_limit_exceeded', 'insufficient_quota'],
]);

const Codes = object({ code: anything, type: anything });

/** The code and the type of an error object. */
export function codesOf(error: unknown): unknown[] {
  const { code, type } = Codes.parse(error);
  return [code, type];
}

/**
 * True of an error object that tells of the model's own trouble. Some servers put an HTTP status in place of
 * a code.
 */
export function tellsOverload(error: unknown): true | undefined {
  const isOwn = codesOf(error).some(
    (code) => ownErrors.has(code) || Number(code) === 429 || Number(code) >= 500,
  );
  return isOwn || undefined;
}

/** Usage with its total, without the numbers that are not known. Input tokens are all of the prompt's. */
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
