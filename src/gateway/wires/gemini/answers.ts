import {
  type AnswerFacts,
  noFacts,
  noteFailure,
  type StreamReader,
  usageWithTotal,
} from '../answer-facts.ts';
import { anything, isObject, list, listOf, object, parsed, text, wholeText } from '../lenient.ts';
import { readError } from '../model-error.ts';
import { usageOf } from './usage.ts';

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
