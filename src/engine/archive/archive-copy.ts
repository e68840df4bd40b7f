import { Readable } from 'node:stream';
import { archiveEnd } from './write-archive.ts';

/**
 * The bytes of an engine's archive, kept while it is read, so that whatever needs the same archive again need
 * not ask the engine, whose answer takes tens of milliseconds even for an empty folder. An archive of more
 * than `maxBytes` is not kept.
 */
export class ArchiveCopy {
  readonly #maxBytes: number;
  #chunks: Buffer[] | undefined = [];
  #bytes = 0;
  #isWhole = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  async *passing(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      this.#bytes += chunk.length;
      if (this.#bytes > this.#maxBytes) this.#chunks = undefined;
      this.#chunks?.push(chunk);
      yield chunk;
    }
  }

  /** Says that the archive was read to its end marker. */
  end(): void {
    this.#isWhole = true;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Undefined if it is not whole. */
  read(): Readable | undefined {
    if (!this.#isWhole || this.#chunks === undefined) return undefined;
    // A reader stops at the marker, which may be cut here.
    return Readable.from([...this.#chunks, archiveEnd], { objectMode: false });
  }
}
