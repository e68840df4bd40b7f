import { freeFormInput, isFreeFormTool } from '../../../translation/free-form.ts';
import type { NeutralAnswer, NeutralStop, NeutralUsage } from '../../../translation/neutral-answer.ts';
import type { NeutralRequest } from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, at, losses }) => {
  const texts = (type: 'text' | 'refusal' | 'reasoning') =>
    answer.parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
  const calls = answer.parts.flatMap((part) => (part.type === 'call' ? [callOf(part, request)] : []));
  if (answer.parts.some((part) => part.type === 'reasoning' && part.signature !== undefined))
    losses.record('answer.signature', 'reasoning');
  const message = {
    role: 'assistant',
    content: texts('text') || null,
    refusal: texts('refusal') || null,
    ...(texts('reasoning') !== '' && { reasoning_content: texts('reasoning') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return {
    ...head(answer, 'chat.completion', request.model, at),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[answer.stop] }],
    ...(Object.keys(answer.usage).length > 0 && { usage: usageOf(answer.usage) }),
  };
};

export function head(
  { id, model }: Pick<NeutralAnswer, 'id' | 'model'>,
  object: string,
  asked: string,
  at: number,
): JsonObject {
  return { id: id ?? 'chatcmpl-offsite', object, created: Math.floor(at / 1000), model: model ?? asked };
}

export const finishReasons: Readonly<Record<NeutralStop, string>> = {
  done: 'stop',
  tools: 'tool_calls',
  length: 'length',
  context: 'length',
  refused: 'content_filter',
  sequence: 'stop',
};

export function callOf(
  { id, name, arguments: given }: { id: string; name: string; arguments: string },
  request: NeutralRequest,
): JsonObject {
  if (isFreeFormTool(request, name))
    return { id, type: 'custom', custom: { name, input: freeFormInput(given) } };
  return { id, type: 'function', function: { name, arguments: given } };
}

export function usageOf({
  input = 0,
  output = 0,
  cacheRead,
  cacheWrite,
  reasoning,
}: NeutralUsage): JsonObject {
  const cached = {
    ...(cacheRead !== undefined && { cached_tokens: cacheRead }),
    ...(cacheWrite !== undefined && { cache_write_tokens: cacheWrite }),
  };
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(Object.keys(cached).length > 0 && { prompt_tokens_details: cached }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}
