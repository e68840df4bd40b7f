import { OffsiteError } from '../../base/offsite-error.ts';
import { archives } from '../../bounds/sandbox.ts';
import { paddingOf, readRecords } from './tar-entries.ts';
import { blockBytes, readTarHeader } from './tar-header.ts';

const nothing: Buffer = Buffer.alloc(0);

/**
 * Adds up the sizes that the headers of an archive declare, while the archive streams by in chunks of any
 * size. A header comes before its content, so a sparse file of terabytes is refused before it is read.
 */
export class DeclaredBytes {
  readonly #most: number;
  readonly #path: string;
  #total = 0;
  /** The length of the longest file so far. */
  longest = 0;
  /** Bytes of the records that describe the next entry, without padding; 0 while a header is collected. */
  #records = 0;
  #held = nothing;
  #wanted = blockBytes;
  /** Bytes of content that are still to come. */
  #content = 0;
  #sizeInRecords: number | undefined;

  /** @param path what is archived, for the error */
  constructor(most: number, path: string) {
    this.#most = most;
    this.#path = path;
  }

  /** Throws `ENGINE_TOO_LARGE` once all files together are larger than allowed. */
  add(bytes: number): void {
    this.#total += bytes;
    this.longest = Math.max(this.longest, bytes);
    if (this.#total > this.#most) throw tooLarge(this.#path, this.#most);
  }

  /** Takes the next chunk. Throws as {@link add} does, or if the archive is damaged. */
  push(chunk: Buffer): void {
    for (let rest = chunk; rest.length > 0; ) {
      const passed = Math.min(this.#content, rest.length);
      this.#content -= passed;
      rest = rest.subarray(passed);
      const part = rest.subarray(0, this.#wanted - this.#held.length);
      rest = rest.subarray(part.length);
      this.#held = this.#held.length === 0 ? part : Buffer.concat([this.#held, part]);
      if (this.#held.length === this.#wanted) this.#take(this.#held);
    }
  }

  #take(block: Buffer): void {
    const records = this.#records;
    this.#records = 0;
    this.#held = nothing;
    this.#wanted = blockBytes;
    if (records === 0) this.#takeHeader(block);
    else this.#sizeInRecords = readRecords(block.subarray(0, records)).size ?? this.#sizeInRecords;
  }

  #takeHeader(block: Buffer): void {
    const header = readTarHeader(block);
    if (header === undefined) return;
    const { flag } = header;
    if (flag === 'x' && header.size > 0 && header.size <= archives.bytes.nameRecords) {
      this.#records = header.size;
      this.#wanted = header.size + paddingOf(header.size);
      return;
    }
    const isAboutNext = ['x', 'g', 'L', 'K'].includes(flag);
    const size = flag === '5' ? 0 : isAboutNext ? header.size : (this.#sizeInRecords ?? header.size);
    if (!isAboutNext) this.#sizeInRecords = undefined;
    this.#content = size + paddingOf(size);
    this.add(size);
  }
}

function tooLarge(path: string, most: number): OffsiteError {
  return new OffsiteError(`${path} is larger than ${most} bytes`, {
    code: 'ENGINE_TOO_LARGE',
    kind: 'infrastructure',
  });
}
