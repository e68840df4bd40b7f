import type { ScriptedAnswer, ScriptedCall } from '../../scripted/answer.ts';
import type { JsonObject } from '../lenient.ts';
import type { StreamForm } from '../wire-descriptor.ts';
import { piecesOf, type WireEvent } from '../wire-event.ts';

/** Chat Completions: https://platform.openai.com/docs/api-reference/chat */
export function writeAnswer(answer: ScriptedAnswer, at: number): JsonObject {
  const { text, calls } = answer;
  const refused = answer.stop === 'refusal';
  const message = {
    role: 'assistant',
    content: text === '' || refused ? null : text,
    refusal: refused ? text : null,
    ...(calls.length > 0 && { tool_calls: calls.map((call) => callOf(call, call.arguments)) }),
  };
  return {
    ...head(answer, 'chat.completion', at),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
    ...(answer.usage && { usage: usageOf(answer) }),
  };
}

export function* writeStream(
  answer: ScriptedAnswer,
  { characters, at, usageAsked }: StreamForm,
): Generator<WireEvent> {
  const chunk = (choices: JsonObject[], more: JsonObject = {}): WireEvent => ({
    event: undefined,
    data: { ...head(answer, 'chat.completion.chunk', at), choices, ...more },
  });
  // With include_usage every chunk but the last carries a null.
  const usage = usageAsked ? { usage: null } : {};
  const delta = (delta: JsonObject, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }], usage);

  yield delta({ role: 'assistant', content: answer.calls.length > 0 && answer.text === '' ? null : '' });
  const textField = answer.stop === 'refusal' ? 'refusal' : 'content';
  for (const piece of piecesOf(answer.text, characters))
    yield { ...delta({ [textField]: piece }), isText: textField === 'content' };
  for (const [index, call] of answer.calls.entries()) {
    yield delta({ tool_calls: [{ index, ...callOf(call, '') }] });
    for (const piece of piecesOf(call.arguments, characters))
      yield delta({ tool_calls: [{ index, function: { arguments: piece } }] });
  }
  yield delta({}, finishReason(answer));
  if (usageAsked && answer.usage) yield chunk([], { usage: usageOf(answer) });
  yield { event: undefined, data: '[DONE]' };
}

function head({ id, model }: ScriptedAnswer, object: string, at: number): JsonObject {
  return { id: `chatcmpl-${id}`, object, created: Math.floor(at / 1000), model };
}

function callOf({ id, tool }: ScriptedCall, given: string): JsonObject {
  return { id, type: 'function', function: { name: tool, arguments: given } };
}

function finishReason({ stop, calls }: ScriptedAnswer): string {
  if (stop === 'length') return 'length';
  if (stop === 'refusal') return 'stop';
  return calls.length > 0 ? 'tool_calls' : 'stop';
}

function usageOf({ usage }: ScriptedAnswer): JsonObject {
  if (!usage) return {};
  const { input, output, cacheRead, reasoning } = usage;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cacheRead !== undefined && { prompt_tokens_details: { cached_tokens: cacheRead } }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}
