import type { ChatMessage, ChatRequest } from '../../chat/chat.ts';
import {
  anything,
  isObject,
  type JsonObject,
  member,
  object,
  objectsOf,
  toolType,
  wholeText,
} from '../lenient.ts';
import { type ModelRequest, type RequestMessage, textsOf, toolOf } from '../model-request.ts';
import { fields } from '../reply.ts';

/** Without it a stream does not tell its usage. */
export const usageOption = { member: 'stream_options', option: 'include_usage' };

/** Tools that a client runs itself; all else is the provider's, also what this gateway has never heard of. */
const clientsOwn: ReadonlySet<unknown> = new Set(['function', 'custom']);

export function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type') ?? (isObject(member(tool, 'function')) ? 'function' : undefined);
  return clientsOwn.has(type) ? undefined : toolType(tool);
}

const Message = object({ role: anything, content: anything, tool_calls: anything, tool_call_id: wholeText });
const Call = object({ id: wholeText, function: object({ name: wholeText, arguments: anything }) });
const Tool = object({ function: object({ name: anything, parameters: anything }) });

export function read(body: JsonObject): ModelRequest {
  const system: string[] = [];
  const messages: RequestMessage[] = [];
  for (const item of objectsOf(body.messages)) {
    const { role, content, tool_calls, tool_call_id: callId = '' } = Message.parse(item);
    const texts = textsOf(content);
    if (role === 'system' || role === 'developer') system.push(...texts);
    else if (role === 'tool') messages.push({ from: 'tool', callId, texts });
    else if (role === 'assistant')
      messages.push({ from: 'model', texts, calls: objectsOf(tool_calls).map(callOf) });
    else messages.push({ from: 'user', texts });
  }
  const functions = objectsOf(body.tools).map((tool) => Tool.parse(tool).function);
  return { system, messages, tools: functions.flatMap((tool) => toolOf(tool.name, tool.parameters)) };
}

function callOf(item: JsonObject) {
  const { id = '', function: called } = Call.parse(item);
  return { id, name: called.name ?? '', arguments: called.arguments };
}

export function write(model: string, request: ChatRequest): JsonObject {
  return fields({
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
  });
}

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
        // Servers whose templates parse the history refuse what is no JSON, so malformed arguments go back
        // wrapped.
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      }));
      if (calls.length === 0) return { role: 'assistant', content: message.text };
      return { role: 'assistant', content: message.text || null, tool_calls: calls };
    }
  }
}
