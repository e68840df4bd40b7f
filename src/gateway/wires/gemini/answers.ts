import type { NeutralUsage } from '../../translation/neutral-answer.ts';
import type { Stops } from '../../translation/stops.ts';
import {
  type AnswerFacts,
  noFacts,
  noteFailure,
  type StreamReader,
  usageWithTotal,
} from '../answer-facts.ts';
import { anything, isObject, list, listOf, object, parsed, text, tokens, wholeText } from '../lenient.ts';
import { readError } from '../model-error.ts';
import { fields } from '../reply.ts';

export const stops: Stops = {
  STOP: 'done',
  MAX_TOKENS: 'length',
  SAFETY: 'refused',
  RECITATION: 'refused',
  LANGUAGE: 'refused',
  BLOCKLIST: 'refused',
  PROHIBITED_CONTENT: 'refused',
  SPII: 'refused',
};

/** A whole answer, or an event of a stream. */
const Answer = object({
  modelVersion: text,
  candidates: anything,
  promptFeedback: object({ blockReason: wholeText }),
  usageMetadata: anything,
  error: anything,
});
const Candidates = listOf(object({ finishReason: wholeText }));

export function readFacts(body: unknown): AnswerFacts {
  const answer = Answer.parse(body);
  const { message: failure, isOverload: overloaded } = readError(answer.error);
  return {
    usage: usageWithTotal(usageOf(answer.usageMetadata)),
    answeredBy: answer.modelVersion,
    complete: Array.isArray(answer.candidates) || isBlocked(answer),
    failure,
    overloaded,
  };
}

/** Events with none of these, such as those of a text, need not be parsed. */
const worthParsing = /"(usageMetadata|error|finishReason|blockReason)"/;

/** The stream has no last event: it is complete once a candidate says why it ended. */
export function readStream(): StreamReader {
  const facts = noFacts();
  return {
    event(data) {
      if (facts.answeredBy !== undefined && !worthParsing.test(data)) return;
      const chunk = Answer.parse(parsed(data));
      const failure = readError(chunk.error);
      if (failure.message !== undefined) noteFailure(facts, failure);
      facts.answeredBy ??= chunk.modelVersion;
      // Each event has the counts so far.
      if (isObject(chunk.usageMetadata)) facts.usage = usageWithTotal(usageOf(chunk.usageMetadata));
      const isFinished = Candidates.parse(chunk.candidates).some(
        ({ finishReason }) => finishReason !== undefined,
      );
      if (isFinished || isBlocked(chunk)) facts.complete = true;
    },
    facts: () => facts,
  };
}

/** The provider refused the prompt, and wrote nothing. */
function isBlocked({ promptFeedback, candidates }: ReturnType<typeof Answer.parse>): boolean {
  return promptFeedback.blockReason !== undefined && list(candidates).length === 0;
}

const Usage = object({
  promptTokenCount: tokens,
  candidatesTokenCount: tokens,
  thoughtsTokenCount: tokens,
  cachedContentTokenCount: tokens,
});

/** The wire counts thoughts apart from the rest of the output. */
export function usageOf(usage: unknown): NeutralUsage {
  const all = Usage.parse(usage);
  const { promptTokenCount: input, candidatesTokenCount: said, thoughtsTokenCount: reasoning } = all;
  // An answer without text has no count of it.
  const output =
    said === undefined && reasoning === undefined && input === undefined
      ? undefined
      : (said ?? 0) + (reasoning ?? 0);
  return fields({ input, output, cacheRead: all.cachedContentTokenCount, reasoning });
}
