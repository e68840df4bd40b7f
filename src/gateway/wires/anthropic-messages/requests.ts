import type { ChatMessage, ChatRequest } from '../../chat/chat.ts';
import { type Accepted, words } from '../accepted.ts';
import { anything, type JsonObject, member, object, objectsOf, toolType, wholeText } from '../lenient.ts';
import { type ModelRequest, type RequestMessage, textsOf, toolOf } from '../model-request.ts';
import { fields } from '../reply.ts';

export const accepted: Accepted = {
  members: words(`
    model messages system max_tokens metadata stop_sequences stream temperature top_k top_p tools
    tool_choice thinking service_tier context_management output_config output_format cache_control speed
    inference_geo`),
  hosted: words('mcp_servers container'),
  parts: words(`
    text image document search_result thinking redacted_thinking tool_use tool_result tool_reference
    compaction`),
  toolMembers: words(`
    type name description input_schema input_examples cache_control strict defer_loading
    eager_input_streaming allowed_callers max_characters display_width_px display_height_px display_number
    enable_zoom`),
};

/** This wire requires a limit; every model since Claude 3.5 accepts this one. */
export const defaultMaxTokens = 8192;

/**
 * Tools whose calls come back to the client, and the search among the request's own tools; all other tools
 * run at the provider.
 */
const clientsOwn = /^(custom|(bash|text_editor|computer|memory|tool_search_tool_(regex|bm25))_\d{8})$/;

export function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type') ?? 'custom';
  return typeof type === 'string' && clientsOwn.test(type) ? undefined : toolType(tool);
}

const Message = object({ role: anything, content: anything });
const Result = object({ tool_use_id: wholeText, content: anything });
const Call = object({ id: wholeText, name: wholeText, input: anything });

export function read(body: JsonObject): ModelRequest {
  const system = textsOf(body.system);
  const messages: RequestMessage[] = [];
  for (const item of objectsOf(body.messages)) {
    const { role, content } = Message.parse(item);
    const texts = textsOf(content);
    const parts = objectsOf(content);
    if (role === 'system') system.push(...texts);
    else if (role === 'assistant') {
      const calls = parts.filter(({ type }) => type === 'tool_use').map(callOf);
      messages.push({ from: 'model', texts, calls });
    } else {
      const results = parts.filter(({ type }) => type === 'tool_result').map(resultOf);
      messages.push(...results);
      if (results.length === 0) messages.push({ from: 'user', texts });
      else if (texts.length > 0) messages.push({ from: 'user', texts, besideResults: true });
    }
  }
  return {
    system,
    messages,
    tools: objectsOf(body.tools).flatMap((tool) => toolOf(tool.name, tool.input_schema)),
  };
}

function callOf(part: JsonObject) {
  const { id = '', name = '', input } = Call.parse(part);
  return { id, name, arguments: input };
}

function resultOf(part: JsonObject): RequestMessage {
  const { tool_use_id: callId = '', content } = Result.parse(part);
  return { from: 'tool', callId, texts: textsOf(content) };
}

/**
 * The wire has no seed. Not all servers that speak it can answer in JSON, so the schema becomes a tool that
 * the model must call.
 */
export function write(model: string, request: ChatRequest): JsonObject {
  const tools = [...(request.tools ?? []), ...answerTool(request)];
  return fields({
    model,
    max_tokens: request.maxTokens ?? defaultMaxTokens,
    system: request.system,
    messages: messagesOf(request.messages),
    tools:
      tools.length === 0
        ? undefined
        : tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    tool_choice: request.schema && choiceFor(request),
    temperature: request.temperature,
  });
}

function answerTool({ schema }: ChatRequest) {
  if (!schema) return [];
  return [{ name: schema.name, description: 'Gives your answer.', parameters: schema.schema }];
}

/** If the request has tools, the model may use those first. */
function choiceFor({ schema, tools }: ChatRequest): JsonObject {
  return tools?.length ? { type: 'any' } : { type: 'tool', name: schema?.name };
}

/**
 * Users and models must take turns, and tool results belong to the user: merges consecutive messages of one
 * side.
 */
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
  // The API refuses empty text blocks.
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
