import type { Losses } from '../../../translation/losses.ts';
import type { NeutralAnswer, NeutralStop, NeutralUsage } from '../../../translation/neutral-answer.ts';
import type { ModelPart } from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import { argumentsObject, fields } from '../../reply.ts';
import { signedParts } from './signatures.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, losses }) => {
  const carried = answer.parts.filter((part) => part.type !== 'reasoning' || !part.redacted);
  if (carried.length < answer.parts.length) losses.record('answer.redacted', 'reasoning');
  const parts = signedParts(carried, (part) => partOf(part, losses));
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

export function partOf(part: Exclude<ModelPart, { type: 'reasoning' }>, losses: Losses): JsonObject {
  if (part.type !== 'call') return { text: part.text };
  return { functionCall: { id: part.id, name: part.name, args: argumentsObject(part.arguments, losses) } };
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
