import type { ModelPart } from '../../../translation/neutral-request.ts';
import { callPart, stopOf, stopWith } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, member, objectsOf } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';
import { fields, plainText } from '../../reply.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';

export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  const [choice, ...others] = objectsOf(member(body, 'choices'));
  const message = choice?.message;
  if (!isObject(body) || others.length > 0 || !isObject(message))
    throw new UnreadableAnswer('the answer is not one of openai-chat');
  if (choice?.logprobs != null) losses.tell('answer.logprobs', 'answer detail');
  const parts: ModelPart[] = [];
  const said = (type: 'text' | 'refusal' | 'reasoning', text: string) => {
    if (text !== '') parts.push({ type, text });
  };
  said('reasoning', thoughtIn(message));
  said('text', plainText(message.content));
  said('refusal', stringIn(message, 'refusal') ?? '');
  for (const call of objectsOf(message.tool_calls)) {
    const name = member(call.function, 'name');
    const given = member(call.function, 'arguments');
    const text = typeof given === 'string' ? given : JSON.stringify(given ?? {});
    parts.push(callPart(ids, { id: call.id, name, arguments: text || '{}' }));
  }
  return {
    ...fields({ id: stringIn(body, 'id'), model: stringIn(body, 'model') }),
    parts,
    stop: stopWith(stopOf(stops, choice?.finish_reason), parts),
    usage: usageOf(body.usage),
  };
};

/** Servers name the model's thoughts in one of two ways. */
export function thoughtIn(message: Record<string, unknown>): string {
  return stringIn(message, 'reasoning_content') ?? stringIn(message, 'reasoning') ?? '';
}
