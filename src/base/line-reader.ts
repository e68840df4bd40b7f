import { ByteStore } from './byte-store.ts';

const lineFeed = 0x0a;

/**
 * Splits a stream of bytes into lines, wherever its chunks begin and end. A line is decoded as a whole, so
 * that no character is split. Its pieces are copied, because the engine reuses its buffers, and take no more
 * memory than their bytes, even if each piece is one byte. A line longer than `longest` bytes is dropped and
 * reported once.
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
      const end = chunk.indexOf(lineFeed, at);
      if (end === -1) break;
      this.#add(chunk.subarray(at, end));
      this.end();
      at = end + 1;
    }
    this.#add(chunk.subarray(at));
  }

  /** Ends the current line. At the end of the stream, that is a line without a newline. */
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
