import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { connectionFailure } from '../port/failure.ts';
import { bytesAfter, rewritten } from './write-archive.ts';

export interface CopyLimits {
  /** Bytes of all its files. Holes count where no program can find them. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/** The engine's archive of a path. Disposing ends the transfer. */
export interface RawArchive extends Disposable {
  /** A tar stream. It fails with `ENGINE_TOO_LARGE`, or if the connection is cut. */
  archive: Readable;
}

/** Opens the engine's archive of a path in a container. Throws `ENGINE_NOT_FOUND`. One round trip. */
export async function openArchive(
  { port, id }: { port: EnginePort; id: string },
  path: string,
  { maxBytes, signal }: CopyLimits,
): Promise<RawArchive> {
  const source = await port.containers.getArchive(id, path, signal, { owners: true });
  const declared = new DeclaredBytes(maxBytes, path);
  const archive = rewritten(source, (header) => {
    declared.add(bytesAfter(header));
    return header;
  });
  const deadline = startDeadline(port.clock, archives.time.transfer, signal);
  deadline.signal.addEventListener('abort', () => source.destroy(deadline.signal.reason), { once: true });
  // A reader of the archive gets its errors too. Without a reader, an error must not end the process.
  archive.on('error', () => undefined);
  return {
    archive,
    [Symbol.dispose]() {
      deadline[Symbol.dispose]();
      archive.destroy();
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

/**
 * Adds up the sizes that the headers of an archive declare. A header comes before its content, so a sparse
 * file of terabytes is refused before it is read.
 */
export class DeclaredBytes {
  readonly #most: number;
  readonly #path: string;
  #total = 0;

  /** @param path what is archived, for the error */
  constructor(most: number, path: string) {
    this.#most = most;
    this.#path = path;
  }

  /** Throws `ENGINE_TOO_LARGE` once all files together are larger than allowed. */
  add(bytes: number): void {
    this.#total += bytes;
    if (this.#total > this.#most) throw tooLarge(this.#path, this.#most);
  }
}

function tooLarge(path: string, most: number): OffsiteError {
  return new OffsiteError(`${path} is larger than ${most} bytes`, {
    code: 'ENGINE_TOO_LARGE',
    kind: 'infrastructure',
  });
}
