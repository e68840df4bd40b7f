import type { Losses } from '../../translation/losses.ts';
import {
  type Content,
  dropUnsupported,
  efforts,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  type NeutralTool,
  samplingIn,
  splitSystem,
  textPart,
  toolFrom,
} from '../../translation/neutral-request.ts';
import { portableId } from '../../translation/stream-steps.ts';
import {
  fields,
  isObject,
  type JsonObject,
  list,
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
  words,
} from '../lenient.ts';
import { argumentsOf } from '../openai.ts';
import { textsOf, type WireTranslation } from '../wire-descriptor.ts';

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
      toolChoice: readChoice(choice, losses),
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

function readChoice(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
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
    if (role !== 'assistant') return userMessages(blocksIn(content), losses);
    return [{ from: 'model', parts: losses.each(blocksIn(content), (block) => modelPart(block, losses)) }];
  });
  return [...system, ...messages];
}

const textMembers = words('type text');

function systemOf(content: unknown, at: string, losses: Losses): NeutralMessage[] {
  for (const block of objectsOf(content)) losses.rest(block, at, textMembers, 'message option');
  return textsOf(content).map((text) => ({ from: 'system', text }));
}

function blocksIn(content: unknown): JsonObject[] {
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
      parts: losses.each(blocksIn(block.content), (inner) => readContent(inner, `${at}.content[]`, losses)),
      failed: block.is_error === true,
    };
  });
  const parts = losses.each(own, (block) => readContent(block, at, losses));
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

function readContent(block: JsonObject, path: string, losses: Losses): Content {
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

/** This wire requires a limit; every model since Claude 3.5 accepts this one. */
export const defaultMaxTokens = 8192;

export const writeRequest: WireTranslation['writeRequest'] = (request, losses, to) => {
  const { system, messages } = splitSystem(request.messages, losses);
  dropUnsupported(request, ['seed', 'presencePenalty', 'frequencyPenalty'], losses);
  const maxTokens = request.maxTokens ?? to.maxOutputTokens ?? defaultMaxTokens;
  return fields({
    model: to.model,
    max_tokens: maxTokens,
    system: system.length === 0 ? undefined : system.map((text) => ({ type: 'text', text })),
    messages: messagesOf(messages, losses),
    tools:
      request.tools.length === 0
        ? undefined
        : request.tools.map(({ name, description, parameters, strict }) =>
            fields({
              name,
              description,
              input_schema: { type: 'object', ...parameters },
              strict,
            }),
          ),
    tool_choice: writeChoice(request),
    stop_sequences: request.stop.length === 0 ? undefined : request.stop,
    temperature: temperatureOf(request, losses),
    top_p: request.topP,
    top_k: request.topK,
    ...thinkingOf(request, maxTokens, losses),
    stream: request.streamed || undefined,
  });
};

/** This wire's highest temperature is 1. */
function temperatureOf({ temperature }: NeutralRequest, losses: Losses): number | undefined {
  if (temperature === undefined || temperature <= 1) return temperature;
  losses.drop('temperature', 'sampling');
  return 1;
}

function writeChoice({ toolChoice, parallelCalls, tools }: NeutralRequest): JsonObject | undefined {
  if (tools.length === 0) return undefined;
  const one = parallelCalls === false ? { disable_parallel_tool_use: true } : {};
  if (toolChoice === 'none') return { type: 'none' };
  if (toolChoice === 'required') return { type: 'any', ...one };
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.tool, ...one };
  return toolChoice === 'auto' || parallelCalls === false ? { type: 'auto', ...one } : undefined;
}

/** The least budget that this wire takes. */
const leastBudget = 1024;

function thinkingOf({ reasoning, format }: NeutralRequest, maxTokens: number, losses: Losses): JsonObject {
  const { effort, budget } = reasoning ?? {};
  // The wire has no option for JSON without a schema; the prompt asks for JSON anyway.
  if (format && !format.schema) losses.drop('format', 'structured output option');
  const config = fields({
    effort: effort === 'none' ? undefined : effort === 'minimal' ? 'low' : effort,
    format: format?.schema && { type: 'json_schema', schema: format.schema },
  });
  const budgetTokens = budget === undefined ? undefined : Math.min(budget, maxTokens - 1);
  const fits = budgetTokens !== undefined && budgetTokens >= leastBudget;
  if (budget !== undefined && !fits) losses.drop('reasoning.budget', 'reasoning');
  return {
    ...(effort === 'none' && { thinking: { type: 'disabled' } }),
    ...(fits && { thinking: { type: 'enabled', budget_tokens: budgetTokens } }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
  };
}

/** Users and models take turns, and results belong to the user: merges consecutive messages of one side. */
function messagesOf(messages: readonly NeutralMessage[], losses: Losses): JsonObject[] {
  const merged: { role: string; content: JsonObject[] }[] = [];
  for (const message of messages) {
    const role = message.from === 'model' ? 'assistant' : 'user';
    const blocks = writeBlocks(message, losses);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else if (blocks.length > 0) merged.push({ role, content: blocks });
  }
  return merged;
}

function writeBlocks(message: NeutralMessage, losses: Losses): JsonObject[] {
  switch (message.from) {
    case 'system':
      return [{ type: 'text', text: message.text }];
    case 'user':
      return message.parts.flatMap(writeContent);
    case 'tool':
      return [
        {
          type: 'tool_result',
          tool_use_id: portableId(message.callId),
          content: message.parts.flatMap(writeContent),
          ...(message.failed && { is_error: true }),
        },
      ];
    case 'model':
      return message.parts.flatMap((part) => modelBlock(part, losses));
  }
}

function modelBlock(part: ModelPart, losses: Losses): JsonObject[] {
  switch (part.type) {
    case 'call':
      return [
        { type: 'tool_use', id: portableId(part.id), name: part.name, input: argumentsOf(part.arguments) },
      ];
    case 'reasoning':
      if (part.signature !== undefined) {
        if (part.redacted) return [{ type: 'redacted_thinking', data: part.signature }];
        return [{ type: 'thinking', thinking: part.text, signature: part.signature }];
      }
      // The API refuses thoughts that it did not sign.
      losses.drop('messages[].parts[].reasoning', 'reasoning');
      return [];
    default:
      return textBlock(part.text);
  }
}

/** The API refuses empty text blocks. */
function textBlock(text: string): JsonObject[] {
  return text.trim() === '' ? [] : [{ type: 'text', text }];
}

function writeContent(part: Content): JsonObject[] {
  if (part.type === 'text') return textBlock(part.text);
  if ('url' in part) return [{ type: 'image', source: { type: 'url', url: part.url } }];
  const source = { type: 'base64', media_type: part.mediaType, data: part.data };
  if (part.type === 'image') return [{ type: 'image', source }];
  return [{ type: 'document', source, ...(part.name !== undefined && { title: part.name }) }];
}
