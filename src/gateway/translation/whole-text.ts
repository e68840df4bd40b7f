import { modelAnswers } from '../../bounds/model.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';

/** Keeps a part of a streamed answer whole, up to a bound. */
export class WholeText {
  #text = '';

  /** About how many bytes it keeps. */
  get held(): number {
    return 2 * this.#text.length;
  }

  /** Throws {@link UnreadableAnswer} if the text becomes too long. */
  add(piece: string): void {
    if (this.#text.length + piece.length > modelAnswers.bytes.translated) {
      throw new UnreadableAnswer(
        `a part of the answer is longer than ${modelAnswers.bytes.translated} characters, ` +
          "and its client's wire needs it whole",
      );
    }
    this.#text += piece;
  }

  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}
