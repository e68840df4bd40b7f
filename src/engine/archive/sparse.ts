import { OffsiteError } from '../../base/offsite-error.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { ByteReader, blockBytes } from './tar-entries.ts';
import type { TarProgram } from './tar-program.ts';

/** A container whose files may have holes. */
export type MaybeSparse = Pick<RunningContainer, 'port' | 'id'> & Partial<Pick<RunningContainer, 'holes'>>;

/**
 * Resolves with what to call before a file of a length is read from the engine's archive, which has zeros in
 * place of holes. That throws before the first large file if the container has holes and there is a better
 * archive: see {@link tarInstead}. Call this before the archive is opened: an engine answers nothing about a
 * container while it reads it.
 */
export async function watchHoles(
  { id, holes }: MaybeSparse,
  signal: AbortSignal | undefined,
): Promise<(size: number) => Promise<void>> {
  await holes?.prepare(signal);
  let hasLooked = false;
  return async (size) => {
    if (hasLooked || size <= archives.bytes.dense) return;
    hasLooked = true;
    if (holes && (await holes.tar(id)) && (await holes.areThere(signal))) throw new HolesFound();
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
export async function tarInstead(thrown: unknown, { id, holes }: MaybeSparse): Promise<TarProgram> {
  const isTooLarge = thrown instanceof OffsiteError && thrown.code === 'ENGINE_TOO_LARGE';
  const tar = thrown instanceof HolesFound || isTooLarge ? await holes?.tar(id) : undefined;
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
