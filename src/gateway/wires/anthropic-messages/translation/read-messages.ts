import type { Losses } from '../../../translation/losses.ts';
import type { Content, ModelPart, NeutralMessage } from '../../../translation/neutral-request.ts';
import { words } from '../../accepted.ts';
import { type JsonObject, member, objectsOf } from '../../lenient.ts';
import { textsOf } from '../../model-request.ts';
import { stringIn } from '../../read-values.ts';

const messageMembers = words('role content');

/** The system text and the messages. Blocks of a user's message become results and the user's own parts. */
export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  const messages: NeutralMessage[] = systemOf(body.system, 'system[]', losses);
  for (const message of objectsOf(body.messages)) {
    losses.rest(message, 'messages[]', messageMembers, 'message option');
    const { role, content } = message;
    if (role === 'system') messages.push(...systemOf(content, 'messages[].content[]', losses));
    else if (role === 'assistant')
      messages.push({ from: 'model', parts: blocksOf(content).map((block) => modelPart(block, losses)) });
    else messages.push(...userMessages(blocksOf(content), losses));
  }
  return messages;
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
  const results: NeutralMessage[] = [];
  const parts: Content[] = [];
  for (const block of blocks) {
    if (block.type !== 'tool_result') {
      parts.push(contentOf(block, at, losses));
      continue;
    }
    losses.rest(block, at, resultMembers, 'message option');
    results.push({
      from: 'tool',
      callId: stringIn(block, 'tool_use_id') ?? losses.refuse(`${at}.tool_use_id`),
      parts: blocksOf(block.content).map((inner) => contentOf(inner, `${at}.content[]`, losses)),
      failed: block.is_error === true,
    });
  }
  return parts.length === 0 ? results : [...results, { from: 'user', parts }];
}

const callMembers = words('type id name input');
const thinkingMembers = words('type thinking signature data');

function modelPart(block: JsonObject, losses: Losses): ModelPart {
  switch (block.type) {
    case 'text':
      losses.rest(block, at, textMembers, 'message option');
      return { type: 'text', text: stringIn(block, 'text') ?? '' };
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
  if (block.type === 'text') {
    losses.rest(block, path, textMembers, 'message option');
    return { type: 'text', text: stringIn(block, 'text') ?? '' };
  }
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
