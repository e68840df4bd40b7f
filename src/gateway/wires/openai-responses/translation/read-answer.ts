import type { CallIds } from '../../../translation/call-ids.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { NeutralStop } from '../../../translation/neutral-answer.ts';
import type { ModelPart } from '../../../translation/neutral-request.ts';
import { callPart } from '../../../translation/read-answers.ts';
import { stopNamed } from '../../../translation/stops.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { readError } from '../../model-error.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { stops } from '../stops.ts';
import { usageOf } from '../usage.ts';
import { reasoningOf } from './reasoning-item.ts';

export const readAnswer: WireTranslation['readAnswer'] = (body, ids, losses) => {
  const { message: failure } = readError(member(body, 'error'));
  if (!isObject(body) || !Array.isArray(body.output) || failure !== undefined)
    throw new UnreadableAnswer(failure ?? 'the answer is not one of openai-responses');
  const parts = objectsOf(body.output).flatMap((item) => partsOf(item, ids, losses));
  const stop = stopOf(body);
  const called = parts.some(({ type }) => type === 'call');
  const refused = parts.some(({ type }) => type === 'refusal');
  return {
    ...fields({ id: stringIn(body, 'id'), model: stringIn(body, 'model') }),
    parts,
    stop: stop !== 'done' ? stop : called ? 'tools' : refused ? 'refused' : 'done',
    usage: usageOf(body.usage),
  };
};

function partsOf(item: JsonObject, ids: CallIds, losses: Losses): ModelPart[] {
  switch (item.type) {
    case 'message':
      return objectsOf(item.content).map((part): ModelPart => {
        if (part.type === 'refusal') return { type: 'refusal', text: stringIn(part, 'refusal') ?? '' };
        if (objectsOf(part.annotations).length > 0) losses.record('answer.annotations', 'answer detail');
        return { type: 'text', text: stringIn(part, 'text') ?? '' };
      });
    case 'reasoning':
      return [reasoningOf(item)];
    case 'function_call': {
      const { call_id: id, name } = item;
      return [callPart(ids, { id: id ?? item.id, name, arguments: argumentsText(item.arguments) })];
    }
    default:
      losses.record(`answer.${typeName(item)}`, 'answer detail');
      return [];
  }
}

/** Some servers send the arguments as an object. */
export function argumentsText(given: unknown): string {
  return typeof given === 'string' ? given || '{}' : JSON.stringify(given ?? {});
}

/** Why a response ended. Throws for one that has not, or that failed. */
export function stopOf(response: JsonObject): NeutralStop {
  const { status } = response;
  if (status === 'completed') return 'done';
  const reason = member(response.incomplete_details, 'reason');
  const stop = status === 'incomplete' ? stopNamed(stops, reason) : undefined;
  if (stop) return stop;
  throw new UnreadableAnswer(
    readError(response.error).message ??
      `the answer ended as ${JSON.stringify(reason ?? status ?? null).slice(0, 100)}`,
  );
}
