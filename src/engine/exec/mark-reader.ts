import { commandOutput } from '../../bounds/sandbox.ts';

/** A piece of a command's output, or a mark that Offsite's own program in the container wrote into it. */
export type MarkedPiece =
  | { kind: 'output'; bytes: Buffer }
  /** The fields after the secret: `['B', '0', '1', '1700000000000000']`. */
  | { kind: 'mark'; fields: string[] };

const lineFeed = 0x0a;

/**
 * Separates marks from the output around them, however the bytes are cut into chunks. A mark is `secret field
 * field ...\n` anywhere in the stream, since output need not end with a newline.
 */
export class MarkReader {
  readonly #secret: Buffer;
  #held: Buffer = Buffer.alloc(0);

  constructor(secret: string) {
    this.#secret = Buffer.from(secret);
  }

  /**
   * Yields pieces in order. Output that may be the beginning of a mark is held back until the next call or
   * `end`.
   */
  *read(chunk: Buffer): Generator<MarkedPiece> {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = Buffer.alloc(0);
    while (rest.length > 0) {
      const at = rest.indexOf(this.#secret);
      if (at === -1) {
        const held = this.#possibleStart(rest);
        if (held < rest.length) yield { kind: 'output', bytes: rest.subarray(0, rest.length - held) };
        this.#hold(rest.subarray(rest.length - held));
        return;
      }
      if (at > 0) yield { kind: 'output', bytes: rest.subarray(0, at) };
      const newline = rest.indexOf(lineFeed, at);
      if (newline === -1 && rest.length - at < commandOutput.bytes.mark) {
        this.#hold(rest.subarray(at));
        return;
      }
      const end = newline === -1 ? rest.length : newline;
      yield {
        kind: 'mark',
        fields: rest
          .toString('latin1', at + this.#secret.length, end)
          .trim()
          .split(' '),
      };
      rest = rest.subarray(end + 1);
    }
  }

  /** Output that was held back when the stream ended. */
  *end(): Generator<MarkedPiece> {
    if (this.#held.length > 0) yield { kind: 'output', bytes: this.#held };
    this.#held = Buffer.alloc(0);
  }

  #hold(bytes: Buffer): void {
    // Copied, because the chunk's buffer is reused.
    this.#held = Buffer.from(bytes);
  }

  /** How many of the last bytes are the beginning of the secret. */
  #possibleStart(bytes: Buffer): number {
    for (let length = Math.min(this.#secret.length - 1, bytes.length); length > 0; length -= 1) {
      if (bytes.subarray(bytes.length - length).equals(this.#secret.subarray(0, length))) return length;
    }
    return 0;
  }
}
