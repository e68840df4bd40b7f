import type { ModelPart } from '../../../translation/neutral-request.ts';
import { callPart, stopOf, stopWith } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { anything, isObject, object, objectsOf, wholeText } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';
import { fields, plainText } from '../../reply.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';

const Answer = object({ id: wholeText, model: wholeText, choices: anything, usage: anything });
const Choice = object({ message: anything, finish_reason: anything, logprobs: anything });
const Call = object({ id: anything, function: object({ name: anything, arguments: anything }) });

export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  const { id, model, choices, usage } = Answer.parse(body);
  const [first, ...others] = objectsOf(choices);
  const { message, logprobs, finish_reason: reason } = Choice.parse(first);
  if (others.length > 0 || !isObject(message))
    throw new UnreadableAnswer('the answer is not one of openai-chat');
  if (logprobs != null) losses.record('answer.logprobs', 'answer detail');
  const parts: ModelPart[] = [];
  const said = (type: 'text' | 'refusal' | 'reasoning', text: string) => {
    if (text !== '') parts.push({ type, text });
  };
  said('reasoning', thoughtIn(message));
  said('text', plainText(message.content));
  said('refusal', stringIn(message, 'refusal') ?? '');
  for (const call of objectsOf(message.tool_calls)) {
    const { id, function: called } = Call.parse(call);
    const given = called.arguments;
    const text = typeof given === 'string' ? given : JSON.stringify(given ?? {});
    parts.push(callPart(ids, { id, name: called.name, arguments: text || '{}' }));
  }
  return {
    ...fields({ id, model }),
    parts,
    stop: stopWith(stopOf(stops, reason), parts),
    usage: usageOf(usage),
  };
};

/** Servers name the model's thoughts in one of two ways. */
export function thoughtIn(message: Record<string, unknown>): string {
  return stringIn(message, 'reasoning_content') ?? stringIn(message, 'reasoning') ?? '';
}
