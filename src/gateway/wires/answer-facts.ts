import type { Usage } from '../../contract/report.ts';
import type { NeutralUsage } from '../translation/neutral-answer.ts';
import { anything, object } from './lenient.ts';
import { fields } from './reply.ts';

/** What an answer says about itself. */
export interface AnswerFacts {
  /** Without a cost. Numbers that the answer does not report are left out. */
  usage: Usage;
  answeredBy: string | undefined;
  /** Whether it is complete. */
  complete: boolean;
  /** The error that an answer of status 200 carried. */
  failure: string | undefined;
  /** Set if the error's code says that the model failed, whatever the request. */
  overloaded?: true | undefined;
}

export interface StreamReader {
  event(data: string): void;
  /** The facts so far. */
  facts(): AnswerFacts;
}

/** The facts of a stream that has not begun. */
export function noFacts(): AnswerFacts {
  return { usage: {}, answeredBy: undefined, complete: false, failure: undefined };
}

/** The error codes and types that providers' APIs use for their own failures. */
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
 * True if an error object reports a failure of the model itself. Some servers use an HTTP status as the code.
 */
export function tellsOverload(error: unknown): true | undefined {
  const isOwn = codesOf(error).some(
    (code) => ownErrors.has(code) || Number(code) === 429 || Number(code) >= 500,
  );
  return isOwn || undefined;
}

/** Usage with its total, without unknown numbers. Input tokens are all tokens of the prompt. */
export function usageWithTotal({ input, output, cacheRead, cacheWrite }: NeutralUsage): Usage {
  return fields({
    inputTokens: input,
    outputTokens: output,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    totalTokens: input === undefined || output === undefined ? undefined : input + output,
  });
}
