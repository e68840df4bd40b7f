import type { Losses } from '../../../translation/losses.ts';
import type { StreamSteps } from '../../../translation/stream-steps.ts';
import { isObject, type JsonObject, objectsOf } from '../../lenient.ts';
import { stringIn, typeName } from '../../read-values.ts';
import { plainText } from '../../reply.ts';

/** Reads a content: a text, or parts of which some are thoughts. */
export function readContent(content: unknown, steps: StreamSteps, losses: Losses): void {
  if (content === undefined || content === null) return;
  for (const part of Array.isArray(content) ? content : [content]) {
    if (typeof part === 'string') steps.text('text', part);
    else if (typeof part === 'number') steps.text('text', String(part));
    else if (isObject(part)) readPart(part, steps, losses);
  }
}

function readPart(part: JsonObject, steps: StreamSteps, losses: Losses): void {
  const { type } = part;
  const text = stringIn(part, 'text');
  if (type === 'thinking' || type === 'reasoning') steps.text('reasoning', thoughtOf(part));
  else if (type === 'refusal') steps.text('refusal', stringIn(part, 'refusal') ?? '');
  else if (text === undefined) losses.record(`answer.content.${typeName(part)}`, 'answer detail');
  else steps.text('text', text);
}

/** Servers give the model's thoughts under one of these names, or the same thoughts under several. */
export const thoughtNames = [
  ...['reasoning_content', 'reasoning', 'thinking', 'reasoning_text', 'reasoning_details', 'thinking_blocks'],
];

export function thoughtIn(message: JsonObject): string {
  for (const name of thoughtNames) {
    const value = message[name];
    if (value === undefined || value === null) continue;
    const text =
      typeof value === 'string'
        ? value
        : isObject(value)
          ? thoughtOf(value)
          : objectsOf(value).map(thoughtOf).join('');
    if (text !== '') return text;
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
