import type { ModelPart } from '../../../translation/neutral-request.ts';
import { callPart, stopOf, stopWith } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, member, objectsOf } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';
import { withSignature } from './signatures.ts';

export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  if (!isObject(body)) throw new UnreadableAnswer('the answer is not one of gemini');
  const [candidate, ...others] = objectsOf(body.candidates);
  const about = {
    ...fields({ id: stringIn(body, 'responseId'), model: stringIn(body, 'modelVersion') }),
    usage: usageOf(body.usageMetadata),
  };
  if (!candidate && member(body.promptFeedback, 'blockReason') !== undefined)
    return { ...about, parts: [], stop: 'refused' };
  if (!candidate || others.length > 0) throw new UnreadableAnswer('the answer is not one of gemini');
  const parts = objectsOf(member(candidate.content, 'parts')).reduce<ModelPart[]>((read, part) => {
    const { functionCall } = part;
    const text = stringIn(part, 'text');
    if (isObject(functionCall)) {
      const { id, name, args } = functionCall;
      const call = callPart(ids, { id, name, arguments: JSON.stringify(args ?? {}) });
      return withSignature(read, call, stringIn(part, 'thoughtSignature'));
    }
    if (text === undefined) losses.tell('answer.parts', 'answer detail');
    const type = part.thought === true ? 'reasoning' : 'text';
    return withSignature(read, { type, text: text ?? '' }, stringIn(part, 'thoughtSignature'));
  }, []);
  return { ...about, parts, stop: stopWith(stopOf(stops, candidate.finishReason), parts) };
};
