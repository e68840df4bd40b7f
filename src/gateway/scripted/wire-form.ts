import type { ScriptedAnswer } from './answer.ts';
import type { Conversation, Json } from './conversation.ts';

/** One server-sent event. */
export interface WireEvent {
  /** The `event:` line; openai-chat has none. */
  event: string | undefined;
  data: Json | '[DONE]';
}

/** How one wire writes answers. */
export interface WireForm {
  /** The answer as one document. */
  document(answer: ScriptedAnswer, at: number): Json;
  /** The answer as a stream's events, in order; texts and arguments in pieces of `characters`. */
  events(
    answer: ScriptedAnswer,
    conversation: Conversation,
    characters: number,
    at: number,
  ): Generator<WireEvent>;
}

/** Pieces of so many characters; none is cut in two. */
export function piecesOf(text: string, characters: number): string[] {
  const all = Array.from(text);
  const pieces: string[] = [];
  for (let start = 0; start < all.length; start += characters)
    pieces.push(all.slice(start, start + characters).join(''));
  return pieces;
}
