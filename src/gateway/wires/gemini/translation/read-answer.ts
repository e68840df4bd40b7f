import { eventObjects } from '../../../translation/event-objects.ts';
import { incomplete, NoAnswer, stopOf } from '../../../translation/read-answers.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { stringIn } from '../../read-values.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';

/** Reads the chunks of a stream. A whole answer is read as its only chunk. */
export const read: WireTranslation['read'] = (steps, losses) => {
  const objectOf = eventObjects();
  let reason: unknown;

  const part = (part: JsonObject) => {
    const signature = stringIn(part, 'thoughtSignature');
    const text = stringIn(part, 'text');
    const isThought = part.thought === true;
    if (signature && !isThought) steps.signature(signature, false);
    if (isObject(part.functionCall)) {
      const { id, name, args } = part.functionCall;
      const given = typeof args === 'string' ? args : JSON.stringify(args ?? {});
      steps.call().add({ id, name, arguments: given }).end();
    } else if (text !== undefined) steps.text(isThought ? 'reasoning' : 'text', text);
    else if (!signature) losses.record('answer.parts', 'answer detail');
    if (signature && isThought) steps.signature(signature, false);
  };

  const take = (chunk: JsonObject) => {
    const failure = readError(chunk.error);
    if (failure.message !== undefined) return steps.failure(failure);
    steps.start(stringIn(chunk, 'responseId'), stringIn(chunk, 'modelVersion'));
    // Each chunk has the counts so far.
    if (isObject(chunk.usageMetadata)) steps.counts(usageOf(chunk.usageMetadata));
    const [candidate, ...others] = objectsOf(chunk.candidates);
    if (others.length > 0) steps.refuse('the answer has more than one candidate');
    if (!candidate && member(chunk.promptFeedback, 'blockReason') !== undefined) return steps.end('refused');
    const parts = objectsOf([member(candidate?.content, 'parts')].flat());
    for (const each of parts) part(each);
    reason = candidate?.finishReason || reason;
  };

  const finish = () => steps.end(stopOf(stops, reason, losses, 'answer.finishReason'));

  return {
    event(data) {
      if (steps.over || data.trim() === '' || data.trim() === '[DONE]') return;
      take(objectOf(data));
    },
    end() {
      if (steps.over) return;
      if (reason === undefined) throw incomplete();
      finish();
    },
    document(body) {
      const isAnswer = isObject(body) && (body.candidates ?? body.promptFeedback ?? body.error) != null;
      if (!isAnswer) throw new NoAnswer('gemini');
      take(body);
      if (!steps.over) finish();
    },
  };
};
