import { randomUUID } from 'node:crypto';
import { type JsonObject, parsed } from './lenient.ts';

/** One server-sent event. */
export interface WireEvent {
  /** The `event:` line; openai-chat has none. */
  event: string | undefined;
  /** A string is sent as it is: `[DONE]`, or JSON. An object may contain a {@link RepeatedText}. */
  data: JsonObject | string;
  /** Whether it carries a piece of the answer's text. */
  isText?: boolean;
}

export function textOfEvent(event: WireEvent): string {
  return partsOfEvent(event).join('');
}

/** The same as parts, of which a repeated text is its own. */
export function partsOfEvent({ event, data }: WireEvent): (string | Buffer)[] {
  const name = event === undefined ? '' : `event: ${event}\n`;
  if (typeof data === 'string') return [`${name}data: ${data}\n\n`];
  const [first, ...more] = partsOf(data);
  return more.length === 0 ? [`${name}data: ${first}\n\n`] : [`${name}data: `, first ?? '', ...more, '\n\n'];
}

/** Stands for a text. No event contains it by chance. */
const placeholder = randomUUID();
let found: Buffer[] | undefined;

/** A long text that several events contain. It is written as JSON once, and never copied. */
export class RepeatedText {
  readonly #json: Buffer;

  constructor(text: string) {
    this.#json = Buffer.from(JSON.stringify(text));
  }

  toJSON(): unknown {
    if (!found) return parsed(this.#json.toString());
    found.push(this.#json);
    return placeholder;
  }
}

/** A value as JSON. */
export function partsOf(value: JsonObject): (string | Buffer)[] {
  const texts: Buffer[] = [];
  found = texts;
  try {
    const [first = '', ...rest] = JSON.stringify(value).split(`"${placeholder}"`);
    return [first, ...rest.flatMap((after, index) => [texts[index] ?? '', after])];
  } finally {
    found = undefined;
  }
}

/** Pieces with the given number of characters; no character is cut. */
export function piecesOf(text: string, characters: number): string[] {
  const all = Array.from(text);
  const pieces: string[] = [];
  for (let start = 0; start < all.length; start += characters)
    pieces.push(all.slice(start, start + characters).join(''));
  return pieces;
}

/**
 * Serializes events that differ in one text only, such as the words of an answer. The rest of the event is
 * serialized once. `make` returns the event with a given text.
 */
export function eventsAround(make: (text: string) => JsonObject): (text: string) => string {
  const [before = '', after = ''] = JSON.stringify(make(placeholder)).split(`"${placeholder}"`);
  return (text) => before + JSON.stringify(text) + after;
}
