import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import { archives } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { EngineClient } from '../connection/engine-client.ts';
import { startDeadline } from '../deadline.ts';
import { DeclaredBytes } from './declared-bytes.ts';
import { type DescribedPath, isFolder } from './path-kind.ts';

export interface CopyLimits {
  /** Bytes of all its files. A sparse file counts with its full length. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/**
 * Copies a folder from one container into the same place of another: the engine's archive of it is handed back to the engine as it
 * comes, so that owners, modes, links, names and times (to the second) stay what they are. Nothing is unpacked here. What is in the way at the other end
 * stays unless it has the same name. Throws `ENGINE_NOT_FOUND`; `ENGINE_NO_FOLDER` for anything but a folder, a symlink to one
 * included; `ENGINE_TOO_LARGE`.
 */
export async function copyBetween(
  client: EngineClient,
  from: string,
  to: string,
  path: string,
  { maxBytes, signal }: CopyLimits,
): Promise<void> {
  const source = (await client.call(
    `reading ${path} from a container`,
    (abortSignal) => client.docker.getContainer(from).getArchive({ path, abortSignal }),
    { signal },
  )) as Readable & DescribedPath;
  const limited = limitedTo(maxBytes, path);
  try {
    assertFolder(source, path);
    using deadline = startDeadline(client.clock, archives.time.transfer, signal);
    deadline.signal.addEventListener('abort', () => source.destroy(deadline.signal.reason), { once: true });
    source.on('error', (error) => limited.destroy(error));
    // A connection that is cut has no 'end': without this the other end would wait for the rest.
    source.on('close', () => {
      if (!source.readableEnded) limited.destroy(new Error('the connection was cut'));
    });
    await handOn(client, to, path, source.pipe(limited), signal);
  } finally {
    source.destroy();
    limited.destroy();
  }
}

async function handOn(
  client: EngineClient,
  to: string,
  path: string,
  archive: Transform,
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = new AbortController();
  let broken: Error | undefined;
  // A request whose body breaks off would never be answered.
  archive.on('error', (error) => {
    broken = error;
    stop.abort(error);
  });
  try {
    await client.call(
      `putting ${path} into a container`,
      (abortSignal) =>
        client.docker.getContainer(to).putArchive(archive, {
          path: posix.dirname(path),
          abortSignal: AbortSignal.any([abortSignal, stop.signal]),
        }),
      { signal, timeoutMs: archives.time.transfer },
    );
  } catch (thrown) {
    if (broken instanceof OffsiteError) throw broken;
    throw thrown;
  }
}

function assertFolder(source: DescribedPath, path: string): void {
  if (isFolder(source)) return;
  throw new OffsiteError(`${path} is not a folder`, { code: 'ENGINE_NO_FOLDER', kind: 'infrastructure' });
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
