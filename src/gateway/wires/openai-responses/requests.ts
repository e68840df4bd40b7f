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
  groupedName,
  imageAt,
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
  isNothing,
  isObject,
  type JsonObject,
  type JsonText,
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
  typeName,
  words,
} from '../lenient.ts';
import { textsOf, type WireTranslation } from '../wire-descriptor.ts';

const known = words(`
  model input instructions tools tool_choice parallel_tool_calls stream stream_options store include
  reasoning text temperature top_p top_k max_output_tokens stop presence_penalty frequency_penalty seed
  background truncation`);

/** These name what is stored at the provider. */
const stored = ['previous_response_id', 'conversation', 'prompt'];

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  for (const name of stored) if (!isNothing(body[name])) losses.refuse(name);
  losses.rest(body, '', known, 'service option');
  if (body.store === true) losses.drop('store', 'service option');
  if (body.truncation === 'auto') losses.drop('truncation', 'service option');
  for (const name of stringsIn(body, 'include')) {
    if (name !== 'reasoning.encrypted_content') losses.drop('include', 'answer detail');
  }
  if (member(body.text, 'verbosity') != null) losses.drop('text.verbosity', 'sampling');
  const { tool_choice: choice } = body;
  const named = isObject(choice) ? stringIn(choice, 'name') : undefined;
  const format = member(body.text, 'format');
  return {
    usageAsked: true,
    messages: readMessages(body, losses),
    tools: readTools(body, losses),
    stop: stringsIn(body, 'stop'),
    ...samplingIn(body),
    ...fields({
      toolChoice: choiceOf(choice, named && inGroup(member(choice, 'namespace'), named), losses),
      parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : undefined,
      maxTokens: numberIn(body, 'max_output_tokens'),
      reasoning: reasoningAsked(body.reasoning, losses),
      format: formatOf(format, format, 'text.format', losses),
    }),
  };
};

/** The name of a tool, which may be in a group. */
function inGroup(group: unknown, name: string): string {
  return typeof group === 'string' ? groupedName(group, name) : name;
}

function reasoningAsked(reasoning: unknown, losses: Losses): NeutralRequest['reasoning'] {
  if (!isObject(reasoning)) return undefined;
  losses.rest(reasoning, 'reasoning', words('effort'), 'reasoning');
  const effort = efforts.find((one) => one === reasoning.effort);
  return effort && { effort };
}

const functionMembers = words('type name description parameters strict');
const customMembers = words('type name description');
const groupMembers = words('type name description tools');

/** The tools of a group become tools of their own. */
export function readTools({ tools }: JsonObject, losses: Losses, group?: string): NeutralTool[] {
  return losses.each(objectsOf(tools), (tool) => {
    if (tool.type === 'namespace' && group === undefined) {
      losses.rest(tool, 'tools[]', groupMembers, 'tool option');
      return readTools(tool, losses, stringIn(tool, 'name') ?? losses.refuse('tools[].name'));
    }
    if (tool.type !== 'function' && tool.type !== 'custom') return losses.refuse('tools[].type');
    const isCustom = tool.type === 'custom';
    losses.rest(tool, 'tools[]', isCustom ? customMembers : functionMembers, 'tool option');
    const read = toolFrom(tool, isCustom ? freeFormParameters : tool.parameters, 'tools[]', losses);
    return {
      ...read,
      name: inGroup(group, read.name),
      ...(group !== undefined && { group: { name: group, tool: read.name } }),
      ...(isCustom && { freeForm: true as const }),
    };
  });
}

/** Items of the model that follow each other are one message. */
export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  const messages: NeutralMessage[] = textsOf(body.instructions).map((text) => ({ from: 'system', text }));
  if (typeof body.input === 'string')
    messages.push({ from: 'user', parts: [{ type: 'text', text: body.input }] });
  for (const message of losses.each(objectsOf(body.input), (item) => messageOf(item, losses))) {
    const last = messages.at(-1);
    if (message.from === 'model' && last?.from === 'model') last.parts.push(...message.parts);
    else messages.push(message);
  }
  return messages;
}

const messageMembers = words('type role content id status phase');
const callMembers = words('type id status call_id name namespace arguments input');
const resultMembers = words('type id status call_id output name');

function messageOf(item: JsonObject, losses: Losses): NeutralMessage {
  const id = () => stringIn(item, 'call_id') ?? losses.refuse('input[].call_id');
  switch (item.type) {
    case undefined:
    case 'message':
      losses.rest(item, 'input[]', messageMembers, 'message option');
      return saidBy(item, losses);
    case 'reasoning':
      return { from: 'model', parts: [reasoningOf(item)] };
    case 'function_call':
    case 'custom_tool_call': {
      losses.rest(item, 'input[]', callMembers, 'message option');
      const name = stringIn(item, 'name') ?? losses.refuse('input[].name');
      const given =
        item.type === 'function_call'
          ? (stringIn(item, 'arguments') ?? '{}')
          : freeFormArguments(stringIn(item, 'input') ?? '');
      const call = { id: id(), name: inGroup(item.namespace, name), arguments: given };
      return { from: 'model', parts: [{ type: 'call', ...call }] };
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      losses.rest(item, 'input[]', resultMembers, 'message option');
      return { from: 'tool', callId: id(), parts: contentsOf(item.output, losses), failed: false };
    default:
      return losses.refuse(`input[] of the type ${typeName(item)}`);
  }
}

function saidBy({ role, content }: JsonObject, losses: Losses): NeutralMessage {
  if (role === 'system' || role === 'developer') return { from: 'system', text: textsOf(content).join('\n') };
  if (role !== 'assistant') return { from: 'user', parts: contentsOf(content, losses) };
  if (typeof content === 'string') return { from: 'model', parts: [{ type: 'text', text: content }] };
  const parts = losses.each(objectsOf(content), (part): ModelPart => {
    if (part.type === 'refusal') return { type: 'refusal', text: stringIn(part, 'refusal') ?? '' };
    return { type: 'text', text: stringIn(part, 'text') ?? losses.refuse('input[].content[].type') };
  });
  return { from: 'model', parts };
}

const textMembers = words('type text annotations logprobs');
const at = 'input[].content[]';

function contentsOf(content: unknown, losses: Losses): Content[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return losses.each(objectsOf(content), (part): Content => {
    switch (part.type) {
      case 'input_text':
      case 'output_text':
      case 'text':
        return textPart(part, at, textMembers, losses);
      case 'input_image':
        if (part.detail != null && part.detail !== 'auto') losses.drop(`${at}.detail`, 'message option');
        return imageAt(stringIn(part, 'image_url') ?? losses.refuse(`${at}.image_url`));
      case 'input_file':
        return documentIn(part.file_data, part.filename) ?? losses.refuse(`${at}.file_data`);
      default:
        return losses.refuse(`${at}.type`);
    }
  });
}

export const writeRequest: WireTranslation['writeRequest'] = (request, losses, to) => {
  const { system, messages } = splitSystem(request.messages, losses);
  dropUnsupported(request, ['topK', 'seed', 'presencePenalty', 'frequencyPenalty'], losses);
  if (request.stop.length > 0) losses.refuse('stop');
  const { toolChoice: choice, tools } = request;
  const effort = effortOf(request, losses);
  return fields({
    model: to.model,
    instructions: system.length === 0 ? undefined : system.join('\n\n'),
    input: messages.flatMap((message) => itemsOf(message, losses)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters, strict = false }) =>
        // With strict tools every parameter is required, so the wire's own default is not taken.
        fields({ type: 'function', name, description, parameters, strict }),
      ),
      tool_choice: typeof choice === 'object' ? { type: 'function', name: choice.tool } : choice,
      parallel_tool_calls: request.parallelCalls,
    }),
    text: writeFormat(request),
    max_output_tokens: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    reasoning: effort && { effort, summary: effort === 'none' ? undefined : 'auto' },
    // Nothing is stored there, so the thoughts travel with the conversation.
    include: effort && effort !== 'none' ? ['reasoning.encrypted_content'] : undefined,
    store: false,
    stream: request.streamed || undefined,
  });
};

/** A budget becomes the effort that is nearest to it. */
function effortOf({ reasoning }: NeutralRequest, losses: Losses): string | undefined {
  const { effort, budget } = reasoning ?? {};
  if (budget !== undefined) losses.drop('reasoning.budget', 'reasoning');
  if (effort !== undefined || budget === undefined) return effort;
  return budget <= 4096 ? 'low' : budget <= 16_384 ? 'medium' : 'high';
}

function writeFormat({ format }: NeutralRequest): JsonObject | undefined {
  if (!format) return undefined;
  const { schema, name = 'answer', strict = false } = format;
  return { format: schema ? { type: 'json_schema', name, schema, strict } : { type: 'json_object' } };
}

function itemsOf(message: NeutralMessage, losses: Losses): JsonObject[] {
  switch (message.from) {
    case 'system':
      return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: message.text }] }];
    case 'user':
      return [{ type: 'message', role: 'user', content: message.parts.map(writePart) }];
    case 'tool': {
      if (message.failed) losses.drop('messages[].failed', 'tool result status');
      const { parts } = message;
      const [only] = parts;
      const output =
        parts.length === 0
          ? ''
          : parts.length === 1 && only?.type === 'text'
            ? only.text
            : parts.map(writePart);
      return [{ type: 'function_call_output', call_id: portableId(message.callId), output }];
    }
    case 'model':
      return message.parts.flatMap((part) => modelItem(part, losses));
  }
}

function modelItem(part: ModelPart, losses: Losses): JsonObject[] {
  const said = (content: JsonObject) => [{ type: 'message', role: 'assistant', content: [content] }];
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : said({ type: 'output_text', text: part.text, annotations: [] });
    case 'refusal':
      return said({ type: 'refusal', refusal: part.text });
    case 'reasoning':
      if (part.signature !== undefined) return [reasoningItem(part)];
      // The API takes back only thoughts that it has encrypted.
      losses.drop('messages[].parts[].reasoning', 'reasoning');
      return [];
    case 'call': {
      const { id, name, arguments: given } = part;
      return [{ type: 'function_call', call_id: portableId(id), name, arguments: given }];
    }
  }
}

function writePart(part: Content): JsonObject {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  if ('url' in part) return { type: 'input_image', image_url: part.url, detail: 'auto' };
  const url = `data:${part.mediaType};base64,${part.data}`;
  if (part.type === 'image') return { type: 'input_image', image_url: url, detail: 'auto' };
  return { type: 'input_file', filename: part.name ?? 'document', file_data: url };
}

type ReasoningPart = Extract<ModelPart, { type: 'reasoning' }>;

interface WrittenReasoning {
  text: string | JsonText;
  signature?: string | undefined;
  redacted?: boolean | undefined;
}

/**
 * Marks encrypted content that the model's wire calls redacted, and not a signature of the text beside it.
 */
const redactedMark = 'redacted:';

export function reasoningOf(item: JsonObject): ReasoningPart {
  const texts = [...objectsOf(item.summary), ...objectsOf(item.content)].flatMap(
    (part) => stringIn(part, 'text') ?? [],
  );
  const signature = stringIn(item, 'encrypted_content') || undefined;
  if (signature?.startsWith(redactedMark))
    return { type: 'reasoning', text: '', signature: signature.slice(redactedMark.length), redacted: true };
  return { type: 'reasoning', text: texts.join('\n\n'), ...(signature && { signature }) };
}

export function reasoningItem({ text, signature, redacted }: WrittenReasoning): JsonObject {
  return {
    type: 'reasoning',
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    ...(signature !== undefined && {
      encrypted_content: redacted ? `${redactedMark}${signature}` : signature,
    }),
  };
}
