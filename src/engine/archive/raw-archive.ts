import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, OffsiteError } from '../../base/offsite-error.ts';
import { archives } from '../../bounds/sandbox.ts';
import { hasHoles } from '../container/disk-use.ts';
import { hostFactsOf, type RunningContainer } from '../container/running-container.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { connectionFailure } from '../port/failure.ts';
import { ByteReader, blockBytes } from './tar-entries.ts';
import type { TarProgram } from './tar-program.ts';
import { bytesAfter, rewritten, sendArchive } from './write-archive.ts';

export interface CopyLimits {
  /** Bytes of all its files. Holes count where no program can find them. */
  maxBytes: number;
  signal?: AbortSignal | undefined;
}

/** The engine's archive of a path. Disposing ends the transfer. */
interface RawArchive extends Disposable {
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
  const declare = sizeLimit(maxBytes, path);
  const archive = rewritten(source, (header) => {
    declare(bytesAfter(header));
    return header;
  });
  const deadline = transferDeadline(port, source, signal);
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

/** Ends the reading of an archive when its time is over. */
export function transferDeadline({ clock }: EnginePort, source: Readable, signal?: AbortSignal): Disposable {
  const deadline = startDeadline(clock, archives.time.transfer, signal);
  deadline.signal.addEventListener('abort', () => source.destroy(deadline.signal.reason), { once: true });
  return deadline;
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
  try {
    await sendArchive(port, { id, folder }, archive, signal);
  } catch (thrown) {
    signal?.throwIfAborted();
    throw connectionFailure(`copying ${path} from a container`, thrown);
  }
}

/**
 * A function that adds up the sizes that the headers of an archive declare. A header comes before its
 * content, so a sparse file of terabytes is refused before it is read. Throws `ENGINE_TOO_LARGE` once all
 * files of `path` together are larger than allowed.
 */
export function sizeLimit(most: number, path: string): (bytes: number) => void {
  let total = 0;
  return (bytes) => {
    total += bytes;
    if (total > most) throw infrastructureError('ENGINE_TOO_LARGE', `${path} is larger than ${most} bytes`);
  };
}

/** A container. If all is known of it, holes of its files can be found. */
export type MaybeSparse = Pick<RunningContainer, 'port' | 'id'> | RunningContainer;

/** GNU tar beside a container, by default beside this one. */
export async function tarBeside(container: MaybeSparse, id = container.id): Promise<TarProgram | undefined> {
  return 'tar' in container ? await container.tar?.(id) : undefined;
}

/**
 * Resolves with what to call before a file of a length is read from the engine's archive, which has zeros in
 * place of holes. That throws before the first large file if the container has holes and there is a better
 * archive: see {@link tarInstead}. Call this before the archive is opened: an engine answers nothing about a
 * container while it reads it.
 */
export async function watchHoles(
  container: MaybeSparse,
  signal: AbortSignal | undefined,
): Promise<(size: number) => Promise<void>> {
  const sparse = 'tar' in container && container.tar ? container : undefined;
  if (sparse) await hostFactsOf(sparse, signal);
  let hasLooked = false;
  return async (size) => {
    if (!sparse || hasLooked || size <= archives.bytes.dense) return;
    hasLooked = true;
    if ((await tarBeside(sparse)) && (await hasHoles(sparse, signal))) throw new HolesFound();
  };
}

class HolesFound extends OffsiteError {
  constructor() {
    super('files of the container have holes', { code: 'ENGINE_HOLES', kind: 'infrastructure' });
  }
}

/**
 * What to read the files with again, after reading the engine's archive threw: they have holes, or they may
 * have some because the archive is too large. Throws what was thrown if it is something else, or if there is
 * no such program.
 */
export async function tarInstead(thrown: unknown, container: MaybeSparse): Promise<TarProgram> {
  const isTooLarge = thrown instanceof OffsiteError && thrown.code === 'ENGINE_TOO_LARGE';
  const tar = thrown instanceof HolesFound || isTooLarge ? await tarBeside(container) : undefined;
  if (tar === undefined) throw thrown;
  return tar;
}

/**
 * The whole content of a sparse file from what its entry holds: lines with the number of pieces and the place
 * and length of each, padded to whole blocks, and then the pieces.
 */
export async function* withHoles(stored: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer> {
  const bytes = new ByteReader(stored);
  const numbers = mapNumbers(bytes);
  const next = async () => (await numbers.next()).value ?? 0;
  const count = await next();
  if (count > archives.count.pieces) throw new Error('the archive has a file with too many holes');
  const pieces: { offset: number; size: number }[] = [];
  while (pieces.length < count) pieces.push({ offset: await next(), size: await next() });
  let at = 0;
  for (const { offset, size } of pieces) {
    yield* zeros(offset - at);
    for (let left = size; left > 0; ) {
      const piece = await bytes.some(left);
      left -= piece.length;
      yield piece;
    }
    at = offset + size;
  }
  yield* zeros(length - at);
}

/** Reads whole blocks, so that the data begins after the block with the last number. */
async function* mapNumbers(bytes: ByteReader): AsyncGenerator<number, undefined> {
  for (let rest = ''; ; ) {
    const lines = `${rest}${(await bytes.exactly(blockBytes)).toString('latin1')}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield Number(line);
  }
}

const zeroChunk: Buffer = Buffer.alloc(64 * 1024);

function* zeros(count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= zeroChunk.length)
    yield zeroChunk.subarray(0, Math.min(left, zeroChunk.length));
}
