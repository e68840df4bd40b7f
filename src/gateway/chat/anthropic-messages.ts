import { type JsonObject, member } from '../wires/dialect.ts';
import type { ChatMessage, ChatRequest } from './chat.ts';
import { argumentsOf, type ChatWire, fields, idOf, plainText, stoppedBy } from './chat-wire.ts';

/** This wire demands a limit; every model since Claude 3.5 takes this one. */
const DEFAULT_MAX_TOKENS = 8192;

/** Anthropic's Messages. It has no seed, and no JSON answers on all servers that speak it: the schema is a tool that must be called. */
export const anthropicMessages: ChatWire = {
  path: '/messages',
  headers: { 'anthropic-version': '2023-06-01' },

  write: (model, request) => {
    const tools = [...(request.tools ?? []), ...answerTool(request)];
    return fields({
      model,
      max_tokens: request.maxTokens ?? DEFAULT_MAX_TOKENS,
      system: request.system,
      messages: messagesOf(request.messages),
      tools:
        tools.length === 0
          ? undefined
          : tools.map(({ name, description, parameters }) => ({
              name,
              description,
              input_schema: parameters,
            })),
      tool_choice: request.schema && choiceFor(request),
      temperature: request.temperature,
    });
  },

  read(document, request) {
    const content = member(document, 'content');
    if (!Array.isArray(content)) return undefined;
    const used = content.filter((block) => member(block, 'type') === 'tool_use');
    const answer = used.find((block) => request.schema && member(block, 'name') === request.schema.name);
    const calls = used
      .filter((block) => block !== answer)
      .map((block, index) => ({
        id: idOf(member(block, 'id'), request, index),
        name: String(member(block, 'name')),
        arguments: argumentsOf(member(block, 'input')),
      }));
    const reason = member(document, 'stop_reason');
    const text = answer ? JSON.stringify(member(answer, 'input')) : plainText(content);
    const cut = reason === 'max_tokens' || reason === 'model_context_window_exceeded';
    return { text, calls, stopped: stoppedBy({ refused: reason === 'refusal', cut, calls }) };
  },
};

function answerTool({ schema }: ChatRequest) {
  if (!schema) return [];
  return [{ name: schema.name, description: 'Gives your answer.', parameters: schema.schema }];
}

/** With tools of its own the model may use those first. */
function choiceFor({ schema, tools }: ChatRequest): JsonObject {
  return tools?.length ? { type: 'any' } : { type: 'tool', name: schema?.name };
}

/** Users and models must take turns, and tool results are the user's: what follows each other from one side is one message. */
function messagesOf(messages: readonly ChatMessage[]): JsonObject[] {
  const merged: { role: string; content: JsonObject[] }[] = [];
  for (const message of messages) {
    const role = message.from === 'model' ? 'assistant' : 'user';
    const blocks = blocksOf(message);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) merged.push({ role, content: blocks });
  }
  return merged;
}

function blocksOf(message: ChatMessage): JsonObject[] {
  // Empty text blocks are refused.
  const said = message.text.trim() === '' ? [] : [{ type: 'text', text: message.text }];
  switch (message.from) {
    case 'user':
      return said;
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: message.callId,
          content: message.text,
          ...(message.failed && { is_error: true }),
        },
      ];
    case 'model':
      return [
        ...said,
        ...message.calls.map((call) => ({
          type: 'tool_use',
          id: call.id,
          name: call.name,
          input: call.arguments,
        })),
      ];
  }
}
