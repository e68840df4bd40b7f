import { eventObjects } from '../../../translation/event-objects.ts';
import type { NeutralUsage } from '../../../translation/neutral-answer.ts';
import { incomplete, stopOf } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { stringIn } from '../../read-values.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';

export const readStream: WireTranslation['readStream'] = (steps, losses) => {
  const read = eventObjects();
  let usage: NeutralUsage = {};
  let reason: unknown;

  const part = (part: JsonObject) => {
    const signature = stringIn(part, 'thoughtSignature');
    const text = stringIn(part, 'text');
    const isThought = part.thought === true;
    if (signature && !isThought) steps.signature(signature, false);
    if (isObject(part.functionCall)) {
      const { id, name, args } = part.functionCall;
      steps
        .call()
        .add({ id, name, arguments: JSON.stringify(args ?? {}) })
        .end();
    } else if (text !== undefined) steps.text(isThought ? 'reasoning' : 'text', text);
    else if (!signature) losses.record('answer.parts', 'answer detail');
    if (signature && isThought) steps.signature(signature, false);
  };

  return {
    event(data) {
      if (steps.over) return;
      if (data.trim() === '' || data.trim() === '[DONE]') return;
      const chunk = read(data);
      const failure = readError(chunk.error);
      if (failure.message !== undefined) return steps.failure(failure);
      steps.start(stringIn(chunk, 'responseId'), stringIn(chunk, 'modelVersion'));
      if (isObject(chunk.usageMetadata)) usage = usageOf(chunk.usageMetadata);
      const [candidate, ...others] = objectsOf(chunk.candidates);
      if (others.length > 0) throw new UnreadableAnswer('the answer has more than one candidate');
      if (!candidate && member(chunk.promptFeedback, 'blockReason') !== undefined)
        return steps.end('refused', usage);
      const parts = objectsOf(member(candidate?.content, 'parts'));
      for (const each of parts) part(each);
      reason = candidate?.finishReason || reason;
    },
    end() {
      if (steps.over) return;
      if (reason === undefined) throw incomplete();
      steps.end(stopOf(stops, reason, losses, 'answer.finishReason'), usage);
    },
  };
};
