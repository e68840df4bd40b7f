import { anything, type JsonObject, member, object, objectsOf, toolType, wholeText } from '../lenient.ts';
import {
  type Accepted,
  type ModelRequest,
  type RequestMessage,
  textsOf,
  toolOf,
  words,
} from '../wire-descriptor.ts';

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
