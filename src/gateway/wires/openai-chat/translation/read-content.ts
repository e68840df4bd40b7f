import type { Losses } from '../../../translation/losses.ts';
import type { StreamSteps } from '../../../translation/stream-steps.ts';
import { isObject, type JsonObject } from '../../lenient.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { plainText } from '../../reply.ts';

interface Reading {
  steps: StreamSteps;
  losses: Losses;
  called(piece: JsonObject): void;
}

/** Reads a content: a text, or parts of which some are thoughts or calls. */
export function readContent(content: unknown, reading: Reading): void {
  if (content === undefined || content === null) return;
  for (const part of Array.isArray(content) ? content : [content]) {
    if (isObject(part)) readPart(part, reading);
    else if (part !== null) reading.steps.text('text', String(part));
  }
}

function readPart(part: JsonObject, { steps, losses, called }: Reading): void {
  const { type } = part;
  const { value } = isObject(part.text) ? part.text : { value: part.text ?? part.content };
  const text = typeof value === 'string' ? value : undefined;
  if (type === 'thinking' || type === 'reasoning') steps.text('reasoning', thoughtOf(part));
  else if (type === 'refusal') steps.text('refusal', stringIn(part, 'refusal') ?? '');
  else if (calledAs.has(type)) called({ ...part, id: part.id ?? part.call_id });
  else if (text === undefined) losses.record(`answer.content.${typeName(part)}`, 'answer detail');
  else steps.text('text', text);
}

const calledAs: ReadonlySet<unknown> = new Set(['tool_use', 'tool_call', 'function_call']);

/** Servers give the model's thoughts under one of these names, or the same thoughts under several. */
export const thoughtNames = [
  ...['reasoning_content', 'reasoning', 'thinking', 'reasoning_text', 'reasoning_details', 'thinking_blocks'],
];

export function thoughtIn(message: JsonObject): string {
  for (const name of thoughtNames) {
    const value = message[name];
    if (value === undefined || value === null) continue;
    const parts = [value].flat().map((one) => (isObject(one) ? thoughtOf(one) : String(one ?? '')));
    if (parts.join('') !== '') return parts.join('');
  }
  return '';
}

function thoughtOf(part: JsonObject): string {
  for (const name of ['thinking', 'reasoning', 'text', 'content', 'summary']) {
    const text = plainText(part[name]);
    if (text !== '') return text;
  }
  return '';
}
