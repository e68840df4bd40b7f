import { posix } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { connectionFailure } from '../port/failure.ts';
import { HoleWatch, type MaybeSparse } from './sparse.ts';
import { blockBytes, paddingOf, readRecords, readTarHeader } from './tar-entries.ts';

export interface CopyLimits {
  /** Bytes of all its files. Holes count where no program can find them. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/** The engine's archive of a path, unread and unchanged. Disposing ends the transfer. */
export interface RawArchive extends Disposable {
  /** A tar stream. It fails with `ENGINE_TOO_LARGE`, or if the connection is cut. */
  archive: Readable;
  /** Whether the path is a folder. A link to a folder is not one. */
  isFolder: boolean;
}

/** Opens the engine's archive of a path in a container. Throws `ENGINE_NOT_FOUND`. One round trip. */
export async function openArchive(
  container: MaybeSparse,
  path: string,
  { maxBytes, signal }: CopyLimits,
): Promise<RawArchive> {
  const { port, id } = container;
  const holes = await HoleWatch.of(container, signal);
  const { archive: source, isFolder } = await port.containers.getArchive(id, path, signal, {
    owners: true,
  });
  const limited = limitedTo(maxBytes, path, holes);
  const deadline = startDeadline(port.clock, archives.time.transfer, signal);
  deadline.signal.addEventListener('abort', () => source.destroy(deadline.signal.reason), { once: true });
  source.on('error', (error) => limited.destroy(error));
  // A connection that is cut has no 'end': without this the receiver would wait for the rest.
  source.on('close', () => {
    if (!source.readableEnded) limited.destroy(new Error('the connection was cut'));
  });
  // A reader of the archive gets its errors too. Without a reader, an error must not end the process.
  limited.on('error', () => undefined);
  return {
    archive: source.pipe(limited),
    isFolder,
    [Symbol.dispose]() {
      deadline[Symbol.dispose]();
      source.destroy();
      limited.destroy();
    },
  };
}

/**
 * Unpacks an archive below a folder of a container. An archive that {@link openArchive} gave for a path is
 * unpacked to the same path by default. Existing files stay unless they have the same name. If reading the
 * archive fails, throws that failure. One round trip.
 *
 * @param path what is copied
 */
export async function unpackArchive(
  port: EnginePort,
  { id, path, folder = posix.dirname(path) }: { id: string; path: string; folder?: string },
  archive: Readable,
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = new AbortController();
  let broken: Error | undefined;
  // The engine never answers a request whose body breaks off.
  archive.on('error', (error) => {
    broken = error;
    stop.abort(error);
  });
  const given = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  try {
    await port.containers.putArchive(id, folder, archive, given);
  } catch (thrown) {
    if (broken === undefined || signal?.aborted) throw thrown;
    throw connectionFailure(`copying ${path} from a container`, broken);
  }
}

function limitedTo(maxBytes: number, path: string, holes: HoleWatch): Transform {
  const declared = new DeclaredBytes(maxBytes, path);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const take = async () => {
        try {
          declared.push(chunk);
        } finally {
          // A file that is too large may consist of holes.
          await holes.check(declared.longest);
        }
      };
      take().then(() => done(undefined, chunk), done);
    },
  });
}

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
