import type { OutputPiece, OutputStream } from '../port/containers.ts';
import { execLost } from '../port/failure.ts';

const headerBytes = 8;

/**
 * Reads the engine's multiplexed output: frames of an 8-byte header (stream number, three zeros, length as
 * big-endian 32 bits) and payload. Pieces are returned as they come and never joined, so a big frame needs no
 * memory and many tiny ones no recursion. Bytes are views into the chunk: copy what you keep.
 */
export class FrameReader {
  #header = Buffer.alloc(headerBytes);
  #headerLength = 0;
  #stream: OutputStream = 'stdout';
  #remaining = 0;

  /** Yields the pieces in `chunk`. Throws an infrastructure error if the bytes are not a frame. */
  *read(chunk: Buffer): Generator<OutputPiece> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#remaining === 0) {
        const taken = Math.min(headerBytes - this.#headerLength, chunk.length - at);
        chunk.copy(this.#header, this.#headerLength, at, at + taken);
        this.#headerLength += taken;
        at += taken;
        if (this.#headerLength < headerBytes) return;
        this.#startFrame();
      } else {
        const end = Math.min(chunk.length, at + this.#remaining);
        this.#remaining -= end - at;
        yield { stream: this.#stream, bytes: chunk.subarray(at, end) };
        at = end;
      }
    }
  }

  /** Call this at the end of the stream. Throws if it ends within a frame: the connection was cut. */
  end(): void {
    if (this.#headerLength > 0 || this.#remaining > 0) {
      throw execLost("The connection to the engine was cut in the middle of a command's output.");
    }
  }

  #startFrame(): void {
    const number = this.#header.readUInt8(0);
    // 0 is stdin echoed back, which the engine's own clients print as stdout.
    if (number > 2 || this.#header.readUIntBE(1, 3) !== 0) {
      throw execLost(
        `The engine sent output in an unknown frame format (header ${this.#header.toString('hex')}).`,
      );
    }
    this.#stream = number === 2 ? 'stderr' : 'stdout';
    this.#remaining = this.#header.readUInt32BE(4);
    this.#headerLength = 0;
  }
}
