import { ByteStore } from './byte-store.ts';

const NEWLINE = 0x0a;

/**
 * Cuts a stream of bytes into lines, however its chunks fall. A line is decoded as a whole, so that no
 * character is cut; its pieces are copied, since the engine only lends them, and come to no more than its
 * bytes, be they bytes of their own. A line that is longer than
 * `longest` bytes is dropped and told of once.
 */
export class LineReader {
  readonly #onLine: (line: string) => void;
  readonly #onOverlong: () => void;
  readonly #longest: number;
  readonly #line = new ByteStore();
  #dropping = false;

  constructor(onLine: (line: string) => void, onOverlong: () => void, longest: number) {
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
    const isWhole = !this.#dropping;
    this.#dropping = false;
    if (isWhole && this.#line.size > 0) this.#onLine(this.#line.take().toString());
  }

  #add(piece: Buffer): void {
    if (piece.length === 0 || this.#dropping) return;
    if (this.#line.size + piece.length > this.#longest) {
      this.#dropping = true;
      this.#line.clear();
      this.#onOverlong();
    } else this.#line.add(piece);
  }
}
