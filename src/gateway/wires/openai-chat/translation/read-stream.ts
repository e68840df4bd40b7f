import { eventObjects } from '../../../translation/event-objects.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { NeutralUsage } from '../../../translation/neutral-answer.ts';
import { incomplete, stopOf } from '../../../translation/read-answers.ts';
import type { StreamSteps } from '../../../translation/stream-steps.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';
import { failureIn } from '../failure.ts';
import { stops } from '../stops.ts';
import { usageIn, usageOf } from '../usage.ts';
import { callsOf } from './read-calls.ts';
import { readContent, thoughtIn } from './read-content.ts';

export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  const read = eventObjects();
  const answer = answerReader(steps, losses);
  return {
    event(data) {
      if (steps.over || data.trim() === '') return;
      if (data.trim() === '[DONE]') return answer.end(true);
      answer.take(read(data));
    },
    // Not every server ends with [DONE].
    end: () => answer.end(false),
  };
};

/** Reads the chunks of a stream. A whole answer is read as its only chunk. */
export function answerReader(steps: StreamSteps, losses: Losses) {
  let usage: NeutralUsage = {};
  let reason: unknown;
  let hasContent = false;
  const called = callsOf(steps);

  const message = (delta: JsonObject) => {
    steps.text('reasoning', thoughtIn(delta));
    readContent(delta.content, steps, losses);
    steps.text('refusal', stringIn(delta, 'refusal') ?? '');
    for (const piece of objectsOf(delta.tool_calls)) called(piece);
    // The form of calls before there were several.
    if (isObject(delta.function_call)) called({ function: delta.function_call });
    if (member(delta.audio, 'data') !== undefined) losses.record('answer.audio', 'answer detail');
    hasContent ||= Object.entries(delta).some(([name, value]) => name !== 'role' && value !== null);
  };

  return {
    take(chunk: JsonObject) {
      const failure = failureIn(chunk);
      if (failure) return steps.failure(failure);
      steps.start(stringIn(chunk, 'id'), stringIn(chunk, 'model'));
      const counted = usageIn(chunk);
      if (counted) usage = usageOf(counted);
      for (const choice of objectsOf(chunk.choices)) {
        if (Number(choice.index ?? 0) !== 0)
          throw new UnreadableAnswer('the answer has more than one choice');
        if (choice.logprobs != null) losses.record('answer.logprobs', 'answer detail');
        // Some servers repeat the whole message at the end.
        if (isObject(choice.delta)) message(choice.delta);
        else if (!hasContent && isObject(choice.message)) message(choice.message);
        else if (!hasContent && typeof choice.text === 'string') message({ content: choice.text });
        reason = choice.finish_reason || reason;
      }
    },
    /** `isTold`: the server said that the answer is complete. */
    end(isTold: boolean) {
      if (steps.over) return;
      if (reason === undefined && !(isTold && hasContent)) throw incomplete();
      steps.end(stopOf(stops, reason, losses, 'answer.finish_reason'), usage);
    },
  };
}
