import { freeFormInput } from '../../../translation/free-form.ts';
import type { NeutralAnswer, NeutralUsage } from '../../../translation/neutral-answer.ts';
import type { ModelPart, NeutralRequest } from '../../../translation/neutral-request.ts';
import { toolNamed } from '../../../translation/tool-groups.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import type { RepeatedText } from '../../wire-event.ts';
import { reasoningItem } from './reasoning-item.ts';

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, at }) => {
  const head = responseHead(answer, request, at);
  const output = answer.parts.map((part, index) => itemOf(part, itemId(head, index), request));
  return endOf(head, output, answer);
};

/** The members of a response that are known at its beginning. */
export function responseHead(
  { id, model }: Pick<NeutralAnswer, 'id' | 'model'>,
  { model: asked, parallelCalls }: NeutralRequest,
  at: number,
): JsonObject {
  return {
    id: id ?? 'resp_offsite',
    object: 'response',
    created_at: Math.floor(at / 1000),
    model: model ?? asked,
    error: null,
    incomplete_details: null,
    parallel_tool_calls: parallelCalls ?? true,
  };
}

export function itemId(head: JsonObject, index: number): string {
  return `item_${String(head.id)}_${index}`;
}

/** The whole response, as it ends. */
export function endOf(
  head: JsonObject,
  output: readonly JsonObject[],
  { stop, usage }: Pick<NeutralAnswer, 'stop' | 'usage'>,
): JsonObject {
  const isCut = stop === 'length' || stop === 'context';
  const isFiltered = stop === 'refused' && !output.some(holdsRefusal);
  const reason = isCut ? 'max_output_tokens' : isFiltered ? 'content_filter' : undefined;
  return {
    ...head,
    status: reason ? 'incomplete' : 'completed',
    ...(reason && { incomplete_details: { reason } }),
    output,
    usage: usageOf(usage),
  };
}

function holdsRefusal({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.some(({ type }) => type === 'refusal');
}

/** An item of the output, complete. */
export function itemOf(part: ModelPart, id: string, request: NeutralRequest): JsonObject {
  switch (part.type) {
    case 'reasoning':
      return { id, ...reasoningItem(part) };
    case 'call':
      return callItem(part, id, request);
    default:
      return messageItem(id, contentOf(part.type, part.text));
  }
}

export function messageItem(id: string, content: JsonObject): JsonObject {
  return { id, type: 'message', status: 'completed', role: 'assistant', content: [content] };
}

export function contentOf(type: 'text' | 'refusal', text: string | RepeatedText): JsonObject {
  if (type === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

export function callItem(
  { id: call_id, name, arguments: given }: { id: string; name: string; arguments: string },
  id: string,
  request: NeutralRequest,
): JsonObject {
  const tool = toolNamed(request, name);
  const named = { name: tool?.group?.tool ?? name, ...(tool?.group && { namespace: tool.group.name }) };
  const common = { id, status: 'completed', call_id, ...named };
  if (tool?.freeForm) return { type: 'custom_tool_call', ...common, input: freeFormInput(given) };
  return { type: 'function_call', ...common, arguments: given };
}

function usageOf({
  input,
  output,
  cacheRead = 0,
  cacheWrite,
  reasoning = 0,
}: NeutralUsage): JsonObject | null {
  if (input === undefined && output === undefined) return null;
  return {
    input_tokens: input ?? 0,
    input_tokens_details: {
      cached_tokens: cacheRead,
      ...(cacheWrite !== undefined && { cache_write_tokens: cacheWrite }),
    },
    output_tokens: output ?? 0,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: (input ?? 0) + (output ?? 0),
  };
}
