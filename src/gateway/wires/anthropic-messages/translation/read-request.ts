import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  efforts,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  type NeutralTool,
} from '../../../translation/neutral-request.ts';
import { samplingIn, textPart, toolFrom } from '../../../translation/read-requests.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import {
  isObject,
  type JsonObject,
  list,
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
  words,
} from '../../lenient.ts';
import { fields } from '../../openai.ts';
import { textsOf } from '../../wire-descriptor.ts';

const known = words(`
  model messages system max_tokens stop_sequences stream temperature top_k top_p tools tool_choice thinking
  output_config mcp_servers container`);

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  for (const name of ['mcp_servers', 'container']) {
    if (body[name] != null && list(body[name]).length !== 0) losses.refuse(name);
  }
  losses.rest(body, '', known, 'service option');
  const choice = body.tool_choice;
  return {
    usageAsked: true,
    messages: readMessages(body, losses),
    tools: readTools(body, losses),
    stop: stringsIn(body, 'stop_sequences'),
    ...samplingIn(body, ['temperature', 'topP', 'topK']),
    ...fields({
      toolChoice: choiceOf(choice, losses),
      parallelCalls: member(choice, 'disable_parallel_tool_use') === true ? false : undefined,
      maxTokens: numberIn(body, 'max_tokens'),
      reasoning: reasoningOf(body),
      format: formatOf(body.output_config),
    }),
  };
};

const toolMembers = words('type name description input_schema strict');

export function readTools(body: JsonObject, losses: Losses): NeutralTool[] {
  return losses.each(objectsOf(body.tools), (tool) => {
    // Other types name a tool whose definition only the provider has.
    if (tool.type != null && tool.type !== 'custom') losses.refuse('tools[].type');
    losses.rest(tool, 'tools[]', toolMembers, 'tool option');
    return toolFrom(tool, tool.input_schema, 'tools[]', losses);
  });
}

function choiceOf(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  switch (member(choice, 'type')) {
    case 'auto':
    case 'none':
      return member(choice, 'type') as 'auto' | 'none';
    case 'any':
      return 'required';
    case 'tool': {
      const name = member(choice, 'name');
      return { tool: typeof name === 'string' ? name : losses.refuse('tool_choice.name') };
    }
    default:
      return undefined;
  }
}

function reasoningOf({ thinking, output_config: config }: JsonObject): NeutralRequest['reasoning'] {
  if (member(thinking, 'type') === 'disabled') return { effort: 'none' };
  const wanted = member(config, 'effort');
  const effort = efforts.find((one) => one === wanted);
  const budget = isObject(thinking) ? numberIn(thinking, 'budget_tokens') : undefined;
  if (effort === undefined && budget === undefined) return undefined;
  return { ...(effort && { effort }), ...(budget !== undefined && { budget }) };
}

function formatOf(config: unknown): NeutralRequest['format'] {
  const schema = member(member(config, 'format'), 'schema');
  return isObject(schema) ? { schema } : undefined;
}

const messageMembers = words('role content');

/** The system text and the messages. Blocks of a user's message become results and the user's own parts. */
export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  const system = systemOf(body.system, 'system[]', losses);
  const messages = losses.each(objectsOf(body.messages), (message): NeutralMessage[] => {
    losses.rest(message, 'messages[]', messageMembers, 'message option');
    const { role, content } = message;
    if (role === 'system') return systemOf(content, 'messages[].content[]', losses);
    if (role !== 'assistant') return userMessages(blocksOf(content), losses);
    return [{ from: 'model', parts: losses.each(blocksOf(content), (block) => modelPart(block, losses)) }];
  });
  return [...system, ...messages];
}

const textMembers = words('type text');

function systemOf(content: unknown, at: string, losses: Losses): NeutralMessage[] {
  for (const block of objectsOf(content)) losses.rest(block, at, textMembers, 'message option');
  return textsOf(content).map((text) => ({ from: 'system', text }));
}

function blocksOf(content: unknown): JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : objectsOf(content);
}

const resultMembers = words('type tool_use_id content is_error');
const at = 'messages[].content[]';

function userMessages(blocks: readonly JsonObject[], losses: Losses): NeutralMessage[] {
  const { true: results = [], false: own = [] } = Object.groupBy(blocks, ({ type }) =>
    type === 'tool_result' ? 'true' : 'false',
  );
  const messages = losses.each(results, (block): NeutralMessage => {
    losses.rest(block, at, resultMembers, 'message option');
    return {
      from: 'tool',
      callId: stringIn(block, 'tool_use_id') ?? losses.refuse(`${at}.tool_use_id`),
      parts: losses.each(blocksOf(block.content), (inner) => contentOf(inner, `${at}.content[]`, losses)),
      failed: block.is_error === true,
    };
  });
  const parts = losses.each(own, (block) => contentOf(block, at, losses));
  return parts.length === 0 ? messages : [...messages, { from: 'user', parts }];
}

const callMembers = words('type id name input');
const thinkingMembers = words('type thinking signature data');

function modelPart(block: JsonObject, losses: Losses): ModelPart {
  switch (block.type) {
    case 'text':
      return textPart(block, at, textMembers, losses);
    case 'thinking': {
      losses.rest(block, at, thinkingMembers, 'message option');
      const signature = stringIn(block, 'signature') || undefined;
      return { type: 'reasoning', text: stringIn(block, 'thinking') ?? '', ...(signature && { signature }) };
    }
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', signature: stringIn(block, 'data') ?? '', redacted: true };
    case 'tool_use':
      losses.rest(block, at, callMembers, 'message option');
      return {
        type: 'call',
        id: stringIn(block, 'id') ?? losses.refuse(`${at}.id`),
        name: stringIn(block, 'name') ?? losses.refuse(`${at}.name`),
        arguments: JSON.stringify(block.input ?? {}),
      };
    default:
      return losses.refuse(`${at}.type`);
  }
}

const mediaMembers = words('type source title');

function contentOf(block: JsonObject, path: string, losses: Losses): Content {
  if (block.type === 'text') return textPart(block, path, textMembers, losses);
  if (block.type !== 'image' && block.type !== 'document') return losses.refuse(`${path}.type`);
  losses.rest(block, path, mediaMembers, 'message option');
  const { source } = block;
  const text = (name: string) => {
    const value = member(source, name);
    return typeof value === 'string' ? value : losses.refuse(`${path}.source.${name}`);
  };
  const name = stringIn(block, 'title');
  switch (member(source, 'type')) {
    case 'base64': {
      const inline = { mediaType: text('media_type'), data: text('data') };
      if (block.type === 'image') return { type: 'image', ...inline };
      return { type: 'document', ...inline, ...(name !== undefined && { name }) };
    }
    case 'text':
      return { type: 'text', text: text('data') };
    case 'url':
      if (block.type === 'image') return { type: 'image', url: text('url') };
  }
  return losses.refuse(`${path}.source.type`);
}
