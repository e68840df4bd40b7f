import type { UnreadableAnswer } from './unreadable-answer.ts';

/** Turns the bytes of a model's answer into those for its client. */
export interface Transcoder {
  /** Throws {@link UnreadableAnswer}. */
  push(bytes: Buffer): Buffer;
  /** The model's answer is complete. Throws {@link UnreadableAnswer}. */
  end(): Buffer;
  /** Bytes that it keeps. */
  held(): number;
}
