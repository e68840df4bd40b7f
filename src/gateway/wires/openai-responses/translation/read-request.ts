import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  efforts,
  freeFormArguments,
  freeFormParameters,
  groupedName,
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
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
  typeName,
} from '../../lenient.ts';
import { fields } from '../../openai.ts';
import { textsOf, words } from '../../wire-descriptor.ts';
import { reasoningOf } from './write-request.ts';

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
  return {
    usageAsked: true,
    messages: readMessages(body, losses),
    tools: readTools(objectsOf(body.tools), losses),
    stop: stringsIn(body, 'stop'),
    ...(fields({
      toolChoice: choiceOf(body.tool_choice, losses),
      parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : undefined,
      maxTokens: numberIn(body, 'max_output_tokens'),
      temperature: numberIn(body, 'temperature'),
      topP: numberIn(body, 'top_p'),
      topK: numberIn(body, 'top_k'),
      seed: numberIn(body, 'seed'),
      presencePenalty: numberIn(body, 'presence_penalty'),
      frequencyPenalty: numberIn(body, 'frequency_penalty'),
      reasoning: reasoningAsked(body.reasoning, losses),
      format: formatOf(member(body.text, 'format'), losses),
    }) as Partial<NeutralRequest>),
  };
};

function choiceOf(choice: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  if (choice == null) return undefined;
  const name = member(choice, 'name');
  if (typeof name !== 'string') return losses.refuse('tool_choice');
  const group = member(choice, 'namespace');
  return { tool: typeof group === 'string' ? groupedName(group, name) : name };
}

function reasoningAsked(reasoning: unknown, losses: Losses): NeutralRequest['reasoning'] {
  if (!isObject(reasoning)) return undefined;
  losses.rest(reasoning, 'reasoning', words('effort'), 'reasoning');
  const effort = efforts.find((one) => one === reasoning.effort);
  return effort && { effort };
}

function formatOf(format: unknown, losses: Losses): NeutralRequest['format'] {
  if (!isObject(format) || format.type === 'text') return undefined;
  if (format.type === 'json_object') return {};
  const { schema } = format as JsonObject;
  if (format.type !== 'json_schema' || !isObject(schema)) return losses.refuse('text.format');
  const name = stringIn(format, 'name');
  return { schema, ...(name !== undefined && { name }), ...(format.strict === true && { strict: true }) };
}

const functionMembers = words('type name description parameters strict');
const customMembers = words('type name description');
const groupMembers = words('type name description tools');

/** The tools of a group become tools of their own. */
function readTools(tools: readonly JsonObject[], losses: Losses, group?: string): NeutralTool[] {
  return tools.flatMap((tool) => {
    const name = stringIn(tool, 'name') ?? losses.refuse('tools[].name');
    if (tool.type === 'namespace' && group === undefined) {
      losses.rest(tool, 'tools[]', groupMembers, 'tool option');
      return readTools(objectsOf(tool.tools), losses, name);
    }
    if (tool.type !== 'function' && tool.type !== 'custom') return losses.refuse('tools[].type');
    const isCustom = tool.type === 'custom';
    losses.rest(tool, 'tools[]', isCustom ? customMembers : functionMembers, 'tool option');
    const description = stringIn(tool, 'description');
    return {
      name: group === undefined ? name : groupedName(group, name),
      ...(description !== undefined && { description }),
      parameters: isCustom ? freeFormParameters : isObject(tool.parameters) ? tool.parameters : {},
      ...(tool.strict === true && { strict: true as const }),
      ...(group !== undefined && { group: { name: group, tool: name } }),
      ...(isCustom && { freeForm: true as const }),
    };
  });
}

/** Items of the model that follow each other are one message. */
function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  const messages: NeutralMessage[] = textsOf(body.instructions).map((text) => ({ from: 'system', text }));
  if (typeof body.input === 'string')
    messages.push({ from: 'user', parts: [{ type: 'text', text: body.input }] });
  for (const item of objectsOf(body.input)) {
    const message = messageOf(item, losses);
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
      const group = stringIn(item, 'namespace');
      const given =
        item.type === 'function_call'
          ? (stringIn(item, 'arguments') ?? '{}')
          : freeFormArguments(stringIn(item, 'input') ?? '');
      const call = { type: 'call' as const, id: id(), arguments: given };
      return {
        from: 'model',
        parts: [{ ...call, name: group === undefined ? name : groupedName(group, name) }],
      };
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
  const parts = objectsOf(content).map((part): ModelPart => {
    if (part.type === 'refusal') return { type: 'refusal', text: stringIn(part, 'refusal') ?? '' };
    return { type: 'text', text: stringIn(part, 'text') ?? losses.refuse('input[].content[].type') };
  });
  return { from: 'model', parts };
}

const textMembers = words('type text annotations logprobs');
const at = 'input[].content[]';

function contentsOf(content: unknown, losses: Losses): Content[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return objectsOf(content).map((part): Content => {
    switch (part.type) {
      case 'input_text':
      case 'output_text':
      case 'text':
        losses.rest(part, at, textMembers, 'message option');
        return { type: 'text', text: stringIn(part, 'text') ?? '' };
      case 'input_image': {
        if (part.detail != null && part.detail !== 'auto') losses.drop(`${at}.detail`, 'message option');
        const url = stringIn(part, 'image_url') ?? losses.refuse(`${at}.image_url`);
        return { type: 'image', ...(inlineData(url) ?? { url }) };
      }
      case 'input_file': {
        const inline = inlineData(stringIn(part, 'file_data') ?? '');
        if (!inline) return losses.refuse(`${at}.file_data`);
        const name = stringIn(part, 'filename');
        return { type: 'document', ...inline, ...(name !== undefined && { name }) };
      }
      default:
        return losses.refuse(`${at}.type`);
    }
  });
}
