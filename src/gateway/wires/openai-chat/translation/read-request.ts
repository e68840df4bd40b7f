import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  efforts,
  freeFormArguments,
  freeFormParameters,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  type NeutralTool,
} from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import {
  inlineData,
  isNothing,
  isObject,
  type JsonObject,
  list,
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
} from '../../lenient.ts';
import { fields } from '../../openai.ts';
import { textsOf, words } from '../../wire-descriptor.ts';

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
  return {
    usageAsked: member(body.stream_options, 'include_usage') === true,
    messages: readMessages(body, losses),
    tools: objectsOf(body.tools).map((tool) => toolOf(tool, losses)),
    stop: stringsIn(body, 'stop'),
    ...(fields({
      toolChoice: choiceOf(body.tool_choice, losses),
      parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : undefined,
      maxTokens: numberIn(body, 'max_completion_tokens') ?? numberIn(body, 'max_tokens'),
      temperature: numberIn(body, 'temperature'),
      topP: numberIn(body, 'top_p'),
      topK: numberIn(body, 'top_k'),
      seed: numberIn(body, 'seed'),
      presencePenalty: numberIn(body, 'presence_penalty'),
      frequencyPenalty: numberIn(body, 'frequency_penalty'),
      reasoning: effort && { effort },
      format: formatOf(body.response_format, losses),
    }) as Partial<NeutralRequest>),
  };
};

const toolMembers = words('type function custom');
const functionMembers = words('name description parameters strict');
const customMembers = words('name description');

function toolOf(tool: JsonObject, losses: Losses): NeutralTool {
  losses.rest(tool, 'tools[]', toolMembers, 'tool option');
  const isCustom = tool.type === 'custom';
  const inner = tool[isCustom ? 'custom' : 'function'];
  if (!isObject(inner)) return losses.refuse('tools[]');
  losses.rest(inner, 'tools[].function', isCustom ? customMembers : functionMembers, 'tool option');
  const description = stringIn(inner, 'description');
  return {
    name: stringIn(inner, 'name') ?? losses.refuse('tools[].function.name'),
    ...(description !== undefined && { description }),
    parameters: isCustom ? freeFormParameters : isObject(inner.parameters) ? inner.parameters : {},
    ...(inner.strict === true && { strict: true as const }),
    ...(isCustom && { freeForm: true }),
  };
}

function choiceOf(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  const name = member(member(choice, 'function') ?? member(choice, 'custom'), 'name');
  if (typeof name === 'string') return { tool: name };
  return choice == null ? undefined : losses.refuse('tool_choice');
}

function formatOf(format: unknown, losses: Losses): NeutralRequest['format'] {
  const type = member(format, 'type');
  if (type === undefined || type === 'text') return undefined;
  if (type === 'json_object') return {};
  const inner = member(format, 'json_schema');
  const schema = member(inner, 'schema');
  if (type !== 'json_schema' || !isObject(inner) || !isObject(schema))
    return losses.refuse('response_format');
  const name = stringIn(inner, 'name');
  const strict = inner.strict === true;
  return { schema, ...(name !== undefined && { name }), ...(strict && { strict }) };
}

const messageMembers = words('role content');
const resultMembers = words('role content tool_call_id name');
const modelMembers = words('role content tool_calls refusal reasoning_content reasoning function_call audio');

function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  return objectsOf(body.messages).map((message): NeutralMessage => {
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
  for (const name of ['function_call', 'audio'])
    if (message[name] != null) losses.refuse(`messages[].${name}`);
  const reasoning = stringIn(message, 'reasoning_content') ?? stringIn(message, 'reasoning') ?? '';
  const refusal = stringIn(message, 'refusal') ?? '';
  return [
    ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
    ...partsOf(message.content).map((part): ModelPart => {
      if (part.type === 'refusal') return { type: 'refusal', text: stringIn(part, 'refusal') ?? '' };
      if (part.type !== 'text') return losses.refuse('messages[].content[].type');
      return { type: 'text', text: stringIn(part, 'text') ?? '' };
    }),
    ...(refusal === '' ? [] : [{ type: 'refusal' as const, text: refusal }]),
    ...objectsOf(message.tool_calls).map((call): ModelPart => {
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
  return partsOf(content).map((part): Content => {
    if (part.type === 'text') {
      losses.rest(part, at, textMembers, 'message option');
      return { type: 'text', text: stringIn(part, 'text') ?? '' };
    }
    if (part.type === 'image_url') {
      losses.rest(part, at, imageMembers, 'message option');
      const image = isObject(part.image_url) ? part.image_url : { url: part.image_url };
      if (image.detail != null && image.detail !== 'auto')
        losses.drop(`${at}.image_url.detail`, 'message option');
      const url = stringIn(image, 'url') ?? losses.refuse(`${at}.image_url.url`);
      const inline = inlineData(url);
      return { type: 'image', ...(inline ?? { url }) };
    }
    if (part.type === 'file') {
      const data = member(part.file, 'file_data');
      const inline = typeof data === 'string' ? inlineData(data) : undefined;
      if (!inline) return losses.refuse(`${at}.file`);
      const name = member(part.file, 'filename');
      return { type: 'document', ...inline, ...(typeof name === 'string' && { name }) };
    }
    return losses.refuse(`${at}.type`);
  });
}
