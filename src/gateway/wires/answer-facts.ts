import type { Usage } from '../../contract/report.ts';
import type { NeutralUsage } from '../translation/neutral-answer.ts';
import type { ModelError } from './model-error.ts';
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
  /** Whether that error says that the model itself failed, whatever the request. */
  overloaded: boolean;
}

export interface StreamReader {
  event(data: string): void;
  /** The facts so far. */
  facts(): AnswerFacts;
}

/** The facts of a stream that has not begun. */
export function noFacts(): AnswerFacts {
  return { usage: {}, answeredBy: undefined, complete: false, failure: undefined, overloaded: false };
}

/** Notes the error that a stream ends with. The first one counts. */
export function noteFailure(facts: AnswerFacts, { message = 'it failed', isOverload }: ModelError): void {
  if (facts.failure !== undefined) return;
  facts.failure = message;
  facts.overloaded = isOverload;
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
