import { answerOf, type NeutralEvent } from '../../../translation/neutral-answer.ts';
import { StreamSteps } from '../../../translation/stream-steps.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, objectsOf } from '../../lenient.ts';
import { failureIn } from '../failure.ts';
import { answerReader } from './read-stream.ts';

/** A whole answer is read as a stream of one chunk. */
export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  const choices = isObject(body) ? objectsOf(body.choices) : [];
  if (!isObject(body) || (choices.length !== 1 && !failureIn(body)))
    throw new UnreadableAnswer('the answer is not one of openai-chat');
  const events: NeutralEvent[] = [];
  const reader = answerReader(new StreamSteps(ids, (event) => events.push(event)), losses);
  reader.take(body);
  reader.end(true);
  return answerOf(events);
};
