import { type AnswerFacts, noFacts, type StreamReader, tellsOverload, usageOf } from '../answer-facts.ts';
import { isObject, list, member, objectsOf, parsed, text } from '../lenient.ts';
import { errorMessage } from '../openai.ts';
import { usageOf as countsOf } from './translation/read-answer.ts';

export function readFacts(body: unknown): AnswerFacts {
  const error = member(body, 'error');
  return {
    usage: usageFrom(member(body, 'usageMetadata')),
    answeredBy: text.parse(member(body, 'modelVersion')),
    complete: Array.isArray(member(body, 'candidates')) || isBlocked(body),
    failure: errorMessage(error),
    overloaded: tellsOverload(error),
  };
}

/** Events with none of these, such as those of a text, need not be parsed. */
const telling = /"(usageMetadata|error|finishReason|blockReason)"/;

/** The stream has no last event: it is complete once a candidate says why it ended. */
export function readStream(): StreamReader {
  const facts = noFacts();
  return {
    event(data) {
      if (facts.answeredBy !== undefined && !telling.test(data)) return;
      const chunk = parsed(data);
      if (!isObject(chunk)) return;
      const failure = errorMessage(chunk.error);
      if (failure !== undefined) facts.overloaded ??= tellsOverload(chunk.error);
      facts.failure ??= failure;
      facts.answeredBy ??= text.parse(chunk.modelVersion);
      // Each event has the counts so far.
      if (isObject(chunk.usageMetadata)) facts.usage = usageFrom(chunk.usageMetadata);
      const isFinished = objectsOf(chunk.candidates).some(
        ({ finishReason }) => typeof finishReason === 'string',
      );
      if (isFinished || isBlocked(chunk)) facts.complete = true;
    },
    facts: () => facts,
  };
}

/** The provider refused the prompt, and wrote nothing. */
function isBlocked(body: unknown): boolean {
  return (
    typeof member(member(body, 'promptFeedback'), 'blockReason') === 'string' &&
    list(member(body, 'candidates')).length === 0
  );
}

function usageFrom(metadata: unknown): AnswerFacts['usage'] {
  const { input, output, cacheRead } = countsOf(metadata);
  return usageOf({
    inputTokens: input,
    outputTokens: output,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: undefined,
  });
}
