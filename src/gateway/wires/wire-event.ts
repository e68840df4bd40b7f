import type { JsonObject } from './lenient.ts';

/** One server-sent event. */
export interface WireEvent {
  /** The `event:` line; openai-chat has none. */
  event: string | undefined;
  /** A string is sent as it is: `[DONE]`, or JSON. */
  data: JsonObject | string;
  /** Whether it carries a piece of the answer's text. */
  isText?: boolean;
}

export function textOfEvent({ event, data }: WireEvent): string {
  const line = `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
  return event === undefined ? line : `event: ${event}\n${line}`;
}

/** Pieces with the given number of characters; no character is cut. */
export function piecesOf(text: string, characters: number): string[] {
  const all = Array.from(text);
  const pieces: string[] = [];
  for (let start = 0; start < all.length; start += characters)
    pieces.push(all.slice(start, start + characters).join(''));
  return pieces;
}
