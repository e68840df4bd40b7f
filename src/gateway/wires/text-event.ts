import { randomUUID } from 'node:crypto';
import type { JsonObject } from './lenient.ts';

/** Nobody else can have this text in an event. */
const place = randomUUID();

/**
 * The data of events that differ in one text only, such as the words of an answer: all else is serialized
 * once. `make` puts the text into the event.
 */
export function eventsAround(make: (text: string) => JsonObject): (text: string) => string {
  const [before = '', after = ''] = JSON.stringify(make(place)).split(`"${place}"`);
  return (text) => before + JSON.stringify(text) + after;
}
