import { Losses } from '../translation/losses.ts';
import type { ModelPart, NeutralMessage } from '../translation/neutral-request.ts';
import type { JsonObject } from '../wires/lenient.ts';
import { fields } from '../wires/reply.ts';
import type { WireDescriptor } from '../wires/wire-descriptor.ts';
import type { ChatMessage, ChatRequest } from './chat.ts';

/** Writes a request of this process, as a translated one. Leaves out what the wire does not support. */
export function writeChat(
  { translation, requests }: WireDescriptor,
  model: string,
  { system, messages, tools = [], schema, temperature, seed, maxTokens }: ChatRequest,
): JsonObject {
  const form = requests.formIsTool && schema;
  const answerTool = form && { name: form.name, description: 'Gives your answer.', parameters: form.schema };
  // If the request has tools, the model may use those first.
  const toolChoice = form && (tools.length > 0 ? ('required' as const) : { tool: form.name });
  return translation.writeRequest(
    {
      ...{ model, streamed: false, usageAsked: true, stop: [] },
      messages: [
        ...(system === undefined ? [] : [{ from: 'system' as const, text: system }]),
        ...messages.map(messageOf),
      ],
      tools: [...tools, ...(answerTool ? [answerTool] : [])].map((tool) => ({ ...tool })),
      ...fields({ toolChoice, temperature, seed, maxTokens, format: form ? undefined : schema }),
    },
    new Losses('lenient', model),
    { model, maxOutputTokens: undefined },
  );
}

function messageOf(message: ChatMessage): NeutralMessage {
  const text = { type: 'text' as const, text: message.text };
  switch (message.from) {
    case 'user':
      return { from: 'user', parts: [text] };
    case 'tool':
      return { from: 'tool', callId: message.callId, parts: [text], failed: message.failed };
    case 'model': {
      const calls = message.calls.map(
        // Servers whose templates parse the history refuse invalid JSON, so malformed arguments are wrapped.
        ({ arguments: given, ...call }): ModelPart => ({
          ...{ type: 'call', ...call, arguments: JSON.stringify(given) },
        }),
      );
      return { from: 'model', parts: [...(message.text === '' ? [] : [text]), ...calls] };
    }
  }
}
