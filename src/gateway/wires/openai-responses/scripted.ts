import type { ScriptedAnswer, ScriptedCall } from '../../scripted/answer.ts';
import type { JsonObject } from '../lenient.ts';
import type { StreamForm } from '../wire-descriptor.ts';
import { piecesOf, type WireEvent } from '../wire-event.ts';

/** Responses: https://platform.openai.com/docs/api-reference/responses-streaming */
export function* writeStream(answer: ScriptedAnswer, { characters, at }: StreamForm): Generator<WireEvent> {
  let sequence_number = 0;
  const event = (type: string, data: JsonObject): WireEvent => ({
    event: type,
    data: { type, sequence_number: sequence_number++, ...data },
  });
  const begun = { ...head(answer, at), status: 'in_progress', output: [], usage: null };
  yield event('response.created', { response: begun });
  yield event('response.in_progress', { response: begun });
  let output_index = 0;
  if (answer.text !== '') {
    const at = { item_id: messageId(answer), output_index, content_index: 0 };
    const empty = { ...messageOf(answer), status: 'in_progress', content: [] };
    yield event('response.output_item.added', { output_index, item: empty });
    yield event('response.content_part.added', { ...at, part: partOf(answer, '') });
    const [kind, field] = answer.stop === 'refusal' ? ['refusal', 'refusal'] : ['output_text', 'text'];
    for (const delta of piecesOf(answer.text, characters))
      yield { ...event(`response.${kind}.delta`, { ...at, delta }), isText: kind === 'output_text' };
    yield event(`response.${kind}.done`, { ...at, [field]: answer.text });
    yield event('response.content_part.done', { ...at, part: partOf(answer, answer.text) });
    yield event('response.output_item.done', { output_index, item: messageOf(answer) });
    output_index += 1;
  }
  for (const call of answer.calls) {
    const item = callOf(call);
    const at = { item_id: item.id, output_index };
    yield event('response.output_item.added', {
      output_index,
      item: { ...item, status: 'in_progress', arguments: '' },
    });
    for (const delta of piecesOf(call.arguments, characters))
      yield event('response.function_call_arguments.delta', { ...at, delta });
    yield event('response.function_call_arguments.done', { ...at, arguments: call.arguments });
    yield event('response.output_item.done', { output_index, item });
    output_index += 1;
  }
  const response = writeAnswer(answer, at);
  yield event(`response.${response.status}`, { response });
}

function head({ id, model }: ScriptedAnswer, at: number): JsonObject {
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: Math.floor(at / 1000),
    model,
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
  };
}

export function writeAnswer(answer: ScriptedAnswer, at: number): JsonObject {
  const cut = answer.stop === 'length';
  return {
    ...head(answer, at),
    status: cut ? 'incomplete' : 'completed',
    ...(cut && { incomplete_details: { reason: 'max_output_tokens' } }),
    output: [...(answer.text === '' ? [] : [messageOf(answer)]), ...answer.calls.map(callOf)],
    usage: usageOf(answer),
  };
}

function messageId({ id }: ScriptedAnswer): string {
  return `msg_${id}`;
}

function messageOf(answer: ScriptedAnswer): JsonObject {
  const content = [partOf(answer, answer.text)];
  return { id: messageId(answer), type: 'message', status: 'completed', role: 'assistant', content };
}

function partOf({ stop }: ScriptedAnswer, text: string): JsonObject {
  if (stop === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function callOf({ id, tool, arguments: given }: ScriptedCall): JsonObject {
  return {
    id: id.replace('call_', 'fc_'),
    type: 'function_call',
    status: 'completed',
    call_id: id,
    name: tool,
    arguments: given,
  };
}

function usageOf({ usage }: ScriptedAnswer): JsonObject | null {
  if (!usage) return null;
  const { input, output, cacheRead = 0, reasoning = 0 } = usage;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
