import { modelAnswers } from '../../bounds/model.ts';
import { UnreadableAnswer } from './neutral-answer.ts';

const mostPieces = 1000;

/** Keeps a part of a streamed answer whole, up to a bound. */
export class WholeText {
  #length = 0;
  /** Long texts. */
  #joined: string[] = [];
  /** The newest pieces: each takes more memory than its characters, so they are joined soon. */
  #pieces: string[] = [];

  /** About how many bytes it keeps. */
  get held(): number {
    return 2 * this.#length;
  }

  /** Throws {@link UnreadableAnswer} if the text becomes too long. */
  add(piece: string): void {
    if (this.#length + piece.length > modelAnswers.bytes.translated) {
      throw new UnreadableAnswer(
        `a part of the answer is longer than ${modelAnswers.bytes.translated} characters, ` +
          "and its client's wire needs it whole",
      );
    }
    this.#length += piece.length;
    if (this.#pieces.push(piece) >= mostPieces) this.#joined.push(this.#pieces.splice(0).join(''));
  }

  take(): string {
    const text = [...this.#joined, ...this.#pieces].join('');
    this.#length = 0;
    this.#joined = [];
    this.#pieces = [];
    return text;
  }
}
