import type { Losses } from '../../translation/losses.ts';
import {
  type Content,
  choiceOf,
  documentIn,
  dropUnsupported,
  efforts,
  formatOf,
  freeFormArguments,
  freeFormParameters,
  imageAt,
  type ModelPart,
  type NeutralMessage,
  type NeutralTool,
  samplingIn,
  samplingOf,
  splitSystem,
  textPart,
  toolFrom,
} from '../../translation/neutral-request.ts';
import { portableId } from '../../translation/stream-steps.ts';
import {
  fields,
  isNothing,
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
import { textsOf, type WireTranslation } from '../wire-descriptor.ts';

const known = words(`
  model messages tools tool_choice parallel_tool_calls stream stream_options temperature top_p top_k stop
  max_tokens max_completion_tokens presence_penalty frequency_penalty seed response_format reasoning_effort
  store n modalities`);

/** Members that cannot be left out: without them, the model would answer something else. */
const needed = `functions function_call audio grammar guided_json guided_regex guided_choice guided_grammar
  structured_outputs json_schema web_search_options plugins search_parameters search_options
  enable_search`.split(/\s+/);

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  for (const name of needed) if (!isNothing(body[name])) losses.refuse(name);
  if (typeof body.n === 'number' && body.n !== 1) losses.refuse('n');
  if (list(body.modalities).some((one) => one !== 'text')) losses.refuse('modalities');
  losses.rest(body, '', known, 'service option');
  const effort = efforts.find((one) => one === body.reasoning_effort);
  const { tool_choice: choice, response_format: format } = body;
  const named = member(choice, 'function') ?? member(choice, 'custom');
  return {
    usageAsked: member(body.stream_options, 'include_usage') === true,
    messages: readMessages(body, losses),
    tools: readTools(body, losses),
    stop: stringsIn(body, 'stop'),
    ...samplingIn(body),
    ...fields({
      toolChoice: choiceOf(choice, member(named, 'name'), losses),
      parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : undefined,
      maxTokens: numberIn(body, 'max_completion_tokens') ?? numberIn(body, 'max_tokens'),
      reasoning: effort && { effort },
      format: formatOf(format, member(format, 'json_schema'), 'response_format', losses),
    }),
  };
};

const toolMembers = words('type function custom');
const functionMembers = words('name description parameters strict');
const customMembers = words('name description');

export function readTools(body: JsonObject, losses: Losses): NeutralTool[] {
  return losses.each(objectsOf(body.tools), (tool) => {
    losses.rest(tool, 'tools[]', toolMembers, 'tool option');
    const isCustom = tool.type === 'custom';
    const inner = tool[isCustom ? 'custom' : 'function'];
    if (!isObject(inner)) return losses.refuse('tools[]');
    losses.rest(inner, 'tools[].function', isCustom ? customMembers : functionMembers, 'tool option');
    const parameters = isCustom ? freeFormParameters : inner.parameters;
    return {
      ...toolFrom(inner, parameters, 'tools[].function', losses),
      ...(isCustom && { freeForm: true as const }),
    };
  });
}

const messageMembers = words('role content');
const resultMembers = words('role content tool_call_id name');
const modelMembers = words('role content tool_calls refusal reasoning_content reasoning function_call audio');

export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  return losses.each(objectsOf(body.messages), (message): NeutralMessage => {
    const { role, content } = message;
    const known = role === 'assistant' ? modelMembers : role === 'tool' ? resultMembers : messageMembers;
    losses.rest(message, 'messages[]', known, 'message option');
    switch (role) {
      case 'system':
      case 'developer':
        return { from: 'system', text: textsOf(content).join('\n') };
      case 'user':
        return { from: 'user', parts: contentsOf(content, losses) };
      case 'assistant':
        return { from: 'model', parts: modelParts(message, losses) };
      case 'tool':
        return {
          from: 'tool',
          callId: stringIn(message, 'tool_call_id') ?? losses.refuse('messages[].tool_call_id'),
          parts: contentsOf(content, losses),
          failed: false,
        };
      default:
        return losses.refuse('messages[].role');
    }
  });
}

function modelParts(message: JsonObject, losses: Losses): ModelPart[] {
  losses.each(['function_call', 'audio'], (name) =>
    message[name] == null ? [] : losses.refuse(`messages[].${name}`),
  );
  const reasoning = stringIn(message, 'reasoning_content') ?? stringIn(message, 'reasoning') ?? '';
  const refusal = stringIn(message, 'refusal') ?? '';
  return [
    ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...losses.each(partsOf(message.content), (part): ModelPart => {
      if (part.type === 'refusal') return { type: 'refusal', text: stringIn(part, 'refusal') ?? '' };
      if (part.type !== 'text') return losses.refuse('messages[].content[].type');
      return { type: 'text', text: stringIn(part, 'text') ?? '' };
    }),
    ...(refusal === '' ? [] : [{ type: 'refusal' as const, text: refusal }]),
    ...losses.each(objectsOf(message.tool_calls), (call): ModelPart => {
      const custom = call.type === 'custom';
      const inner = custom ? call.custom : call.function;
      const given = member(inner, custom ? 'input' : 'arguments');
      const name = member(inner, 'name');
      if (typeof name !== 'string') return losses.refuse('messages[].tool_calls[].function.name');
      const text = typeof given === 'string' ? given : JSON.stringify(given ?? {});
      return {
        type: 'call',
        id: stringIn(call, 'id') ?? losses.refuse('messages[].tool_calls[].id'),
        name,
        arguments: custom ? freeFormArguments(text) : text,
      };
    }),
  ];
}

function partsOf(content: unknown): JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return objectsOf(content);
}

const textMembers = words('type text');
const imageMembers = words('type image_url');
const at = 'messages[].content[]';

function contentsOf(content: unknown, losses: Losses): Content[] {
  return losses.each(partsOf(content), (part): Content => {
    switch (part.type) {
      case 'text':
        return textPart(part, at, textMembers, losses);
      case 'image_url': {
        losses.rest(part, at, imageMembers, 'message option');
        const image = isObject(part.image_url) ? part.image_url : { url: part.image_url };
        if (image.detail != null && image.detail !== 'auto')
          losses.drop(`${at}.image_url.detail`, 'message option');
        return imageAt(stringIn(image, 'url') ?? losses.refuse(`${at}.image_url.url`));
      }
      case 'file': {
        const { file } = part;
        return documentIn(member(file, 'file_data'), member(file, 'filename')) ?? losses.refuse(`${at}.file`);
      }
      default:
        return losses.refuse(`${at}.type`);
    }
  });
}

export const writeRequest: WireTranslation['writeRequest'] = (request, losses, to) => {
  const { system, messages } = splitSystem(request.messages, losses);
  dropUnsupported(request, ['topK'], losses);
  const { toolChoice: choice, reasoning, tools, streamed } = request;
  if (reasoning?.budget !== undefined) losses.drop('reasoning.budget', 'reasoning');
  return fields({
    model: to.model,
    messages: [
      ...(system.length === 0 ? [] : [{ role: 'system', content: system.join('\n\n') }]),
      ...writeMessages(messages, losses),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters, strict }) => ({
        type: 'function',
        function: fields({ name, description, parameters, strict }),
      })),
      tool_choice:
        typeof choice === 'object' ? { type: 'function', function: { name: choice.tool } } : choice,
      parallel_tool_calls: request.parallelCalls,
    }),
    stop: request.stop.length === 0 ? undefined : request.stop,
    // The old name, which local servers know; the others are asked with the new one (gateway/options/).
    max_tokens: request.maxTokens,
    ...samplingOf({ ...request, topK: undefined }),
    reasoning_effort: reasoning?.effort,
    response_format: writeFormat(request.format),
    stream: streamed || undefined,
    stream_options: streamed ? { include_usage: true } : undefined,
  });
};

function writeFormat(
  format: Parameters<WireTranslation['writeRequest']>[0]['format'],
): JsonObject | undefined {
  if (!format) return undefined;
  const { schema, name = 'answer', strict } = format;
  if (!schema) return { type: 'json_object' };
  return { type: 'json_schema', json_schema: fields({ name, schema, strict }) };
}

/**
 * A result of a tool has only text here, so its images follow in a message of the user. That message comes
 * after all results, because the wire requires the results next to their calls.
 */
function writeMessages(messages: readonly NeutralMessage[], losses: Losses): JsonObject[] {
  const written: JsonObject[] = [];
  let media: JsonObject[] = [];
  const flush = () => {
    if (media.length > 0) written.push({ role: 'user', content: media });
    media = [];
  };
  for (const message of messages) {
    if (message.from !== 'tool') flush();
    switch (message.from) {
      case 'system':
      case 'user':
        written.push({
          role: 'user',
          content: writeContent(
            message.from === 'user' ? message.parts : [{ type: 'text', text: message.text }],
          ),
        });
        break;
      case 'tool': {
        const { callId, parts, failed } = message;
        if (failed) losses.drop('messages[].failed', 'tool result status');
        const others = parts.filter(({ type }) => type !== 'text');
        if (others.length > 0) {
          media.push({ type: 'text', text: `From the result of the tool call ${portableId(callId)}:` });
          media.push(...others.map(writePart));
        }
        const content = writeContent(parts.filter(({ type }) => type === 'text'));
        written.push({ role: 'tool', tool_call_id: portableId(callId), content });
        break;
      }
      case 'model':
        written.push(writeModelMessage(message, losses));
    }
  }
  flush();
  return written;
}

function writeModelMessage(
  { parts }: Extract<NeutralMessage, { from: 'model' }>,
  losses: Losses,
): JsonObject {
  const texts = (type: 'text' | 'refusal' | 'reasoning') =>
    parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('');
  const calls = parts.flatMap((part) => (part.type === 'call' ? [part] : []));
  if (parts.some((part) => part.type === 'reasoning' && part.signature !== undefined))
    losses.drop('messages[].parts[].signature', 'reasoning');
  const content = texts('text') || texts('refusal');
  return fields({
    role: 'assistant',
    content,
    // Servers that give thoughts under this name read them back.
    reasoning_content: texts('reasoning') || undefined,
    tool_calls:
      calls.length === 0
        ? undefined
        : calls.map(({ id, name, arguments: given }) => ({
            id: portableId(id),
            type: 'function',
            function: { name, arguments: given },
          })),
  });
}

/** Many servers take only a string. */
function writeContent(parts: readonly Content[]): string | JsonObject[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === parts.length ? texts.join('\n') : parts.map(writePart);
}

function writePart(part: Content): JsonObject {
  if (part.type === 'text') return { type: 'text', text: part.text };
  if ('url' in part) return { type: 'image_url', image_url: { url: part.url } };
  const url = `data:${part.mediaType};base64,${part.data}`;
  if (part.type === 'image') return { type: 'image_url', image_url: { url } };
  return { type: 'file', file: { filename: part.name ?? 'document', file_data: url } };
}
