import type { ScriptedAnswer, ScriptedCall, TokenCounts } from '../../scripted/answer.ts';
import { isObject, type JsonObject, parsed } from '../lenient.ts';
import type { StreamForm } from '../wire-descriptor.ts';
import { piecesOf, type WireEvent } from '../wire-event.ts';

/** Anthropic's Messages: https://docs.anthropic.com/en/api/messages */
export function writeAnswer(answer: ScriptedAnswer): JsonObject {
  return {
    ...head(answer),
    content: [
      ...(answer.text === '' ? [] : [{ type: 'text', text: answer.text }]),
      ...answer.calls.map((call) => ({ ...toolUse(call), input: inputOf(call) })),
    ],
    stop_reason: stopReason(answer),
    stop_sequence: null,
    ...(answer.usage && { usage: usageOf(answer.usage, answer.usage.output) }),
  };
}

export function* writeStream(answer: ScriptedAnswer, { characters }: StreamForm): Generator<WireEvent> {
  const event = (type: string, data: JsonObject = {}): WireEvent => ({
    event: type,
    data: { type, ...data },
  });
  const { usage } = answer;
  const message = { ...head(answer), content: [], stop_reason: null, stop_sequence: null };
  // Clients read members of `usage`, so it is empty rather than missing.
  const first = usage ? usageOf(usage, 1) : {};
  yield event('message_start', { message: { ...message, usage: first } });
  yield event('ping');
  let index = 0;
  if (answer.text !== '') {
    yield event('content_block_start', { index, content_block: { type: 'text', text: '' } });
    for (const text of piecesOf(answer.text, characters))
      yield {
        ...event('content_block_delta', { index, delta: { type: 'text_delta', text } }),
        isText: true,
      };
    yield event('content_block_stop', { index });
    index += 1;
  }
  for (const call of answer.calls) {
    yield event('content_block_start', { index, content_block: { ...toolUse(call), input: {} } });
    for (const partial_json of piecesOf(call.arguments, characters))
      yield event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json } });
    yield event('content_block_stop', { index });
    index += 1;
  }
  yield event('message_delta', {
    delta: { stop_reason: stopReason(answer), stop_sequence: null },
    usage: usage ? usageOf(usage, usage.output) : {},
  });
  yield event('message_stop');
}

function head({ id, model }: ScriptedAnswer): JsonObject {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model };
}

function toolUse({ id, tool }: ScriptedCall): JsonObject {
  return { type: 'tool_use', id: id.replace('call_', 'toolu_'), name: tool };
}

/** A non-streamed answer cannot hold arguments that are not a JSON object. */
function inputOf({ arguments: given }: ScriptedCall): JsonObject {
  const input = parsed(given);
  return isObject(input) ? input : { value: input ?? given };
}

function stopReason({ stop, calls }: ScriptedAnswer): string {
  if (stop === 'length') return 'max_tokens';
  if (stop === 'refusal') return 'refusal';
  return calls.length > 0 ? 'tool_use' : 'end_turn';
}

/** This wire counts cached tokens separately from the others. */
function usageOf({ input, cacheRead = 0, cacheWrite = 0 }: TokenCounts, output: number): JsonObject {
  return {
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
  };
}
