import type { CallIds } from '../../../translation/call-ids.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { ModelPart } from '../../../translation/neutral-request.ts';
import { callPart, stopOf, stopWith } from '../../../translation/read-answers.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';

export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  const { message: failure } = readError(member(body, 'error'));
  if (!isObject(body) || !Array.isArray(body.content) || failure !== undefined)
    throw new UnreadableAnswer(failure ?? 'the answer is not one of anthropic-messages');
  const parts = objectsOf(body.content).flatMap((block) => partOf(block, ids, losses));
  const sequence = stringIn(body, 'stop_sequence');
  return {
    ...fields({ id: stringIn(body, 'id'), model: stringIn(body, 'model'), sequence }),
    parts,
    stop: stopWith(stopOf(stops, body.stop_reason, losses, 'answer.stop_reason'), parts),
    usage: usageOf(body.usage),
  };
};

function partOf(block: JsonObject, ids: CallIds, losses: Losses): ModelPart[] {
  switch (block.type) {
    case 'text':
      if (objectsOf(block.citations).length > 0) losses.record('answer.citations', 'answer detail');
      return [{ type: 'text', text: stringIn(block, 'text') ?? '' }];
    case 'thinking': {
      const signature = stringIn(block, 'signature') || undefined;
      return [
        { type: 'reasoning', text: stringIn(block, 'thinking') ?? '', ...(signature && { signature }) },
      ];
    }
    case 'redacted_thinking':
      return [{ type: 'reasoning', text: '', signature: stringIn(block, 'data') ?? '', redacted: true }];
    case 'tool_use': {
      const { id, name, input } = block;
      return [
        callPart(ids, {
          id,
          name,
          arguments: typeof input === 'string' ? input || '{}' : JSON.stringify(input ?? {}),
        }),
      ];
    }
    default:
      losses.record(`answer.${typeName(block)}`, 'answer detail');
      return [];
  }
}
