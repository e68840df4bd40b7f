import { type JsonObject, list, member } from '../wires/dialect.ts';
import type { ChatMessage } from './chat.ts';
import { argumentsOf, type ChatWire, fields, idOf, plainText, stoppedBy } from './chat-wire.ts';

/** Chat Completions. */
export const openAiChat: ChatWire = {
  path: '/chat/completions',
  headers: {},

  write: (model, request) =>
    fields({
      model,
      messages: [
        ...(request.system === undefined ? [] : [{ role: 'system', content: request.system }]),
        ...request.messages.map(messageOf),
      ],
      tools: request.tools?.map((tool) => ({ type: 'function', function: tool })),
      response_format: request.schema && { type: 'json_schema', json_schema: request.schema },
      temperature: request.temperature,
      seed: request.seed,
      // The old name: all servers know it but OpenAI's newer models, whose refusal names it (see chat-over.ts).
      max_tokens: request.maxTokens,
    }),

  read(document, request) {
    const [choice] = list(member(document, 'choices'));
    const message = member(choice, 'message');
    if (message === undefined) return undefined;
    const calls = list(member(message, 'tool_calls')).map((call, index) => {
      const called = member(call, 'function');
      return {
        id: idOf(member(call, 'id'), request, index),
        name: String(member(called, 'name')),
        arguments: argumentsOf(member(called, 'arguments')),
      };
    });
    const refusal = member(message, 'refusal');
    const reason = member(choice, 'finish_reason');
    const refused = (typeof refusal === 'string' && refusal !== '') || reason === 'content_filter';
    const text = plainText(member(message, 'content')) || (refused ? plainText(refusal) : '');
    return { text, calls, stopped: stoppedBy({ refused, cut: reason === 'length', calls }) };
  },
};

function messageOf(message: ChatMessage): JsonObject {
  switch (message.from) {
    case 'user':
      return { role: 'user', content: message.text };
    case 'tool':
      return { role: 'tool', tool_call_id: message.callId, content: message.text };
    case 'model': {
      const calls = message.calls.map((call) => ({
        id: call.id,
        type: 'function',
        // Servers whose templates parse the history refuse what is no JSON, so malformed arguments go back wrapped.
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      }));
      if (calls.length === 0) return { role: 'assistant', content: message.text };
      return { role: 'assistant', content: message.text || null, tool_calls: calls };
    }
  }
}
