import { createHash } from 'node:crypto';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { keptWorkspaces } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import type { KeptWorkspace, Workspaces } from '../../ledger/workspaces.ts';
import { emptyWorkspace } from '../../validate/workspace-copy.ts';

/** Why what a trial left cannot be graded again; undefined if it can be tried. */
export function obstacleOf(
  kept: KeptWorkspace | undefined,
  store: Pick<Workspaces, 'has'>,
): string | undefined {
  if (kept === undefined) return 'what it left was not kept';
  if (kept.removedAt !== undefined) return 'what it left was removed to free disk space';
  if (kept.kind === 'archive' && !store.has(kept.name ?? ''))
    return 'the archive of its workspace is missing';
  // A record of somebody else may say any size.
  if (kept.kind === 'archive' && kept.byteSize > keptWorkspaces.bytes.archive)
    return 'the archive of its workspace is larger than any that is kept';
  return undefined;
}

/**
 * Replaces the workspace of a fresh container by a kept archive. The engine unpacks it, in the container and
 * nowhere else, while its disk is watched. The archive is compared with its hash and its size. Throws
 * `ARCHIVE_DAMAGED`, `ENGINE_TOO_LARGE` or `DISK_FULL`; the container must then not be used.
 */
export async function restoreArchive(
  container: Container,
  { name = '', byteSize }: Pick<KeptWorkspace, 'name' | 'byteSize'>,
  store: Pick<Workspaces, 'read'>,
  signal: AbortSignal,
): Promise<void> {
  await emptyWorkspace(container, signal);
  // A folder takes eight times as much of a disk as of an archive, and a file of one byte four times.
  await container.fill({ maxBytes: 8 * byteSize, signal }, (filling = signal) =>
    unpackKept(container, { name, byteSize }, store, filling),
  );
}

async function unpackKept(
  container: Container,
  { name, byteSize }: { name: string; byteSize: number },
  store: Pick<Workspaces, 'read'>,
  signal: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256');
  const file = store.read(name);
  file.on('data', (chunk) => hash.update(chunk));
  const archive = exactly(byteSize);
  const sending = pipeline(file, createZstdDecompress(), archive, { signal });
  sending.catch(() => undefined);
  try {
    await container.unpack(container.workingDir, archive, signal);
    await sending;
  } catch (error) {
    signal.throwIfAborted();
    // The reason is in the archive if reading it failed, and in the engine otherwise.
    await sending.catch((thrown: unknown) => {
      throw damaged(messageOf(thrown), thrown);
    });
    throw error;
  }
  if (hash.digest('hex') !== name) throw damaged('its content has another hash');
}

/**
 * Passes the given number of bytes on, and fails at the next one: a small file can be compressed from a huge
 * one.
 */
function exactly(byteSize: number): Transform {
  let left = byteSize;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      done(left < 0 ? new Error('it is longer than it was') : null, chunk);
    },
    flush(done) {
      done(left > 0 ? new Error('it is shorter than it was') : null);
    },
  });
}

function damaged(why: string, cause?: unknown): OffsiteError {
  return new OffsiteError(`the archive of the workspace is damaged: ${why}`, {
    code: 'ARCHIVE_DAMAGED',
    kind: 'infrastructure',
    cause,
  });
}
