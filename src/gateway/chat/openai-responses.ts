import { type JsonObject, list, member } from '../wires/dialect.ts';
import type { ChatMessage } from './chat.ts';
import { argumentsOf, type ChatWire, fields, idOf, plainText, stoppedBy } from './chat-wire.ts';

/** Responses, with the whole conversation sent each time and nothing stored at the provider. It has no seed. */
export const openAiResponses: ChatWire = {
  path: '/responses',
  headers: {},

  write: (model, request) =>
    fields({
      model,
      instructions: request.system,
      input: request.messages.flatMap(itemsOf),
      // Strict tools would allow no parameter to be left out.
      tools: request.tools?.map((tool) => ({ type: 'function', strict: false, ...tool })),
      text: request.schema && { format: { type: 'json_schema', strict: false, ...request.schema } },
      temperature: request.temperature,
      max_output_tokens: request.maxTokens,
      store: false,
    }),

  read(document, request) {
    const output = member(document, 'output');
    if (!Array.isArray(output)) return undefined;
    const itemsOfType = (type: string) => output.filter((item) => member(item, 'type') === type);
    const calls = itemsOfType('function_call').map((item, index) => ({
      id: idOf(member(item, 'call_id'), request, index),
      name: String(member(item, 'name')),
      arguments: argumentsOf(member(item, 'arguments')),
    }));
    const contents = itemsOfType('message').map((item) => member(item, 'content'));
    const refusals = contents
      .flatMap(list)
      .map((part) => member(part, 'refusal'))
      .filter((refusal) => typeof refusal === 'string');
    const reason = member(member(document, 'incomplete_details'), 'reason');
    const refused = refusals.length > 0 || reason === 'content_filter';
    const text = contents.map(plainText).join('') || refusals.join('\n');
    return { text, calls, stopped: stoppedBy({ refused, cut: reason === 'max_output_tokens', calls }) };
  },
};

function itemsOf(message: ChatMessage): JsonObject[] {
  const said = (role: string, type: string) => ({
    type: 'message',
    role,
    content: [{ type, text: message.text }],
  });
  switch (message.from) {
    case 'user':
      return [said('user', 'input_text')];
    case 'tool':
      return [{ type: 'function_call_output', call_id: message.callId, output: message.text }];
    case 'model':
      return [
        ...(message.text === '' ? [] : [said('assistant', 'output_text')]),
        ...message.calls.map((call) => ({
          type: 'function_call',
          call_id: call.id,
          name: call.name,
          arguments: JSON.stringify(call.arguments),
        })),
      ];
  }
}
