import { freeFormArguments } from '../../../translation/free-form.ts';
import type { Losses } from '../../../translation/losses.ts';
import type { Content, ModelPart, NeutralMessage } from '../../../translation/neutral-request.ts';
import { groupedName } from '../../../translation/tool-groups.ts';
import { words } from '../../accepted.ts';
import { type JsonObject, objectsOf } from '../../lenient.ts';
import { textsOf } from '../../model-request.ts';
import { inlineData, stringIn, typeName } from '../../read-values.ts';
import { reasoningOf } from './reasoning-item.ts';

/** Items of the model that follow each other are one message. */
export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
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
