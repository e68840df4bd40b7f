import { harnessLines } from '../bounds/sandbox.ts';

const NEWLINE = 0x0a;

/**
 * Cuts a stream of bytes into lines, however its chunks fall. A line is decoded as a whole, so that no character is cut; its pieces
 * are copied, since the engine only lends them. A line that is longer than `longest` bytes is dropped and told of once.
 */
export class LineReader {
  readonly #onLine: (line: string) => void;
  readonly #onOverlong: () => void;
  readonly #longest: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #dropping = false;

  constructor(onLine: (line: string) => void, onOverlong: () => void, longest = harnessLines.bytes.line) {
    this.#onLine = onLine;
    this.#onOverlong = onOverlong;
    this.#longest = longest;
  }

  push(chunk: Buffer): void {
    let at = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, at);
      if (end === -1) break;
      this.#add(chunk.subarray(at, end));
      this.end();
      at = end + 1;
    }
    this.#add(chunk.subarray(at));
  }

  /** Ends the line that is being read; at the end of the stream, one that has no newline. */
  end(): void {
    const pieces = this.#pieces;
    const whole = !this.#dropping;
    this.#pieces = [];
    this.#bytes = 0;
    this.#dropping = false;
    if (whole && pieces.length > 0) this.#onLine(Buffer.concat(pieces).toString());
  }

  #add(piece: Buffer): void {
    if (piece.length === 0 || this.#dropping) return;
    this.#bytes += piece.length;
    if (this.#bytes > this.#longest) {
      this.#dropping = true;
      this.#pieces = [];
      this.#onOverlong();
      return;
    }
    this.#pieces.push(Buffer.from(piece));
  }
}
