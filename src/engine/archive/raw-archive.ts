import { posix } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { startDeadline } from '../../base/deadline.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { connectionFailure } from '../port/failure.ts';
import { DeclaredBytes } from './declared-bytes.ts';
import { HoleWatch, type MaybeSparse } from './sparse.ts';

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
