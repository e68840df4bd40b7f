import { freeFormArguments } from '../../../translation/free-form.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { Content, ModelPart, NeutralMessage } from '../../../translation/neutral-request.ts';
import { words } from '../../accepted.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { textsOf } from '../../model-request.ts';
import { inlineData, stringIn } from '../../read-values.ts';

const messageMembers = words('role content');
const toolMembers = words('role content tool_call_id name');
const modelMembers = words('role content tool_calls refusal reasoning_content reasoning function_call audio');

export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  return objectsOf(body.messages).map((message): NeutralMessage => {
    const { role, content } = message;
    const known = role === 'assistant' ? modelMembers : role === 'tool' ? toolMembers : messageMembers;
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
