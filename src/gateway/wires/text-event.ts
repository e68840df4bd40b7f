import { randomUUID } from 'node:crypto';
import type { JsonObject } from './lenient.ts';

/** Stands for the text. No event contains it by chance. */
const placeholder = randomUUID();

/**
 * Serializes events that differ in one text only, such as the words of an answer. The rest of the event is
 * serialized once. `make` returns the event with a given text.
 */
export function eventsAround(make: (text: string) => JsonObject): (text: string) => string {
  const [before = '', after = ''] = JSON.stringify(make(placeholder)).split(`"${placeholder}"`);
  return (text) => before + JSON.stringify(text) + after;
}
