import type { NeutralAnswer, NeutralStop, NeutralUsage } from '../../../translation/neutral-answer.ts';
import type { ModelPart } from '../../../translation/neutral-request.ts';
import { UnreadableAnswer } from '../../../translation/unreadable-answer.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { isObject, type JsonObject, parsed } from '../../lenient.ts';
import { fields } from '../../reply.ts';
import { signedParts } from './signatures.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, losses }) => {
  const carried = answer.parts.filter((part) => part.type !== 'reasoning' || !part.redacted);
  if (carried.length < answer.parts.length) losses.record('answer.redacted', 'reasoning');
  const parts = signedParts(carried, partOf);
  return {
    candidates: [{ content: { parts, role: 'model' }, finishReason: finishReasons[answer.stop], index: 0 }],
    ...head(answer, request.model),
    usageMetadata: usageOf(answer.usage),
  };
};

export function head({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: string): JsonObject {
  return { modelVersion: model ?? asked, responseId: id ?? 'offsite' };
}

export const finishReasons: Readonly<Record<NeutralStop, string>> = {
  done: 'STOP',
  tools: 'STOP',
  length: 'MAX_TOKENS',
  context: 'MAX_TOKENS',
  refused: 'SAFETY',
  sequence: 'STOP',
};

export function partOf(part: Exclude<ModelPart, { type: 'reasoning' }>): JsonObject {
  return part.type === 'call' ? callPart(part) : { text: part.text };
}

export function callPart({
  id,
  name,
  arguments: given,
}: {
  id: string;
  name: string;
  arguments: string;
}): JsonObject {
  const args = parsed(given);
  if (!isObject(args))
    throw new UnreadableAnswer(`the arguments of the tool call ${name} are not a JSON object`);
  return { functionCall: { id, name, args } };
}

export function usageOf({ input, output, cacheRead, reasoning }: NeutralUsage): JsonObject {
  return fields({
    promptTokenCount: input,
    candidatesTokenCount: output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0)),
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cacheRead,
    totalTokenCount: input === undefined || output === undefined ? undefined : input + output,
  });
}

export function errorBody(status: number, message: string): JsonObject {
  return { error: { code: status, message, status: statusName(status) } };
}

function statusName(status: number): string {
  const names: Record<number, string> = {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  };
  return names[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
}
