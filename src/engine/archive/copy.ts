import { posix } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { archives } from '../../bounds/sandbox.ts';
import { startDeadline } from '../../deadline.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { connectionFailure } from '../port/failure.ts';
import { DeclaredBytes } from './declared-bytes.ts';

export interface CopyLimits {
  /** Bytes of all its files. A sparse file counts with its full length. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/**
 * Copies a folder from one container to the same path of another. It streams the engine's archive back to the
 * engine unchanged, so owners, modes, links, names and times (to the second) are kept. Nothing is unpacked
 * here. Existing files in the target stay unless they have the same name. Throws `ENGINE_NOT_FOUND`;
 * `ENGINE_NO_FOLDER` for anything but a folder, including a symlink to one; `ENGINE_TOO_LARGE`.
 */
export async function copyBetween(
  port: EnginePort,
  from: string,
  to: string,
  path: string,
  { maxBytes, signal }: CopyLimits,
): Promise<void> {
  const { archive: source, isFolder } = await port.containers.getArchive(from, path, signal);
  const limited = limitedTo(maxBytes, path);
  try {
    if (!isFolder) throw noFolder(path);
    using deadline = startDeadline(port.clock, archives.time.transfer, signal);
    deadline.signal.addEventListener('abort', () => source.destroy(deadline.signal.reason), { once: true });
    source.on('error', (error) => limited.destroy(error));
    // A connection that is cut has no 'end': without this the receiver would wait for the rest.
    source.on('close', () => {
      if (!source.readableEnded) limited.destroy(new Error('the connection was cut'));
    });
    await handOn(port, { to, path, folder: posix.dirname(path) }, source.pipe(limited), signal);
  } finally {
    source.destroy();
    limited.destroy();
  }
}

/**
 * Gives an archive to a container, below a folder of it. If reading the archive fails, throws that failure.
 *
 * @param path what is copied, for the error
 */
export async function handOn(
  port: EnginePort,
  { to, path, folder }: { to: string; path: string; folder: string },
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
    await port.containers.putArchive(to, folder, archive, given);
  } catch (thrown) {
    if (broken === undefined || signal?.aborted) throw thrown;
    throw connectionFailure(`copying ${path} from a container`, broken);
  }
}

function noFolder(path: string): OffsiteError {
  return new OffsiteError(`${path} is not a folder`, { code: 'ENGINE_NO_FOLDER', kind: 'infrastructure' });
}

function limitedTo(maxBytes: number, path: string): Transform {
  const declared = new DeclaredBytes(maxBytes, path);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        declared.push(chunk);
        done(undefined, chunk);
      } catch (error) {
        done(error as Error);
      }
    },
  });
}
