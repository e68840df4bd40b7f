import type { AnswerStream } from './answer-stream.ts';
import type { UnreadableAnswer } from './unreadable-answer.ts';

/** Turns the bytes of a model's answer into those for its client. */
export interface Transcoder {
  /** Throws {@link UnreadableAnswer} if there is nothing for the client. */
  push(bytes: Buffer): Buffer[];
  /** The model's answer is complete. Throws as `push` does. */
  end(): Buffer[];
  /** Why the answer breaks off after the bytes so far; look after each push and at the end. */
  problem(): UnreadableAnswer | undefined;
  /** Whether the model has said the end of its answer, and its client has it. */
  isOver?(): boolean;
  /** Its reading of a stream, once the beginning has shown that it is one. */
  stream?(): AnswerStream | undefined;
  /** Bytes that it keeps. */
  held(): number;
}
