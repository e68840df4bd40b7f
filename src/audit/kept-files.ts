import { createHash } from 'node:crypto';
import type { ReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { messageOf } from '../base/offsite-error.ts';
import { keptWorkspaces } from '../bounds/sandbox.ts';
import { nameText } from '../engine/archive/names.ts';
import { tarEntries } from '../engine/archive/tar-entries.ts';
import { PathRoom, tooManyPaths } from '../engine/changes/path-room.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { Checks } from './checks.ts';

/** The archive of the workspace has the files that the record says the agent left. */
export async function checkKeptFiles(
  { left, changes }: TrialRecord,
  key: number,
  { workspaces }: Pick<Ledger, 'workspaces'>,
  checks: Checks,
): Promise<void> {
  const kept = workspaces.of(key);
  if (left?.kind !== 'archive' || !changes || kept?.kind !== 'archive' || kept.removedAt !== undefined)
    return;
  const name = kept.name ?? '';
  if (!workspaces.has(name)) return;
  const says = 'the kept workspace has the files of the record';
  try {
    const files = await filesOf(workspaces.read(name), Math.min(kept.byteSize, keptWorkspaces.bytes.archive));
    for (const [index, { path, kind, after }] of changes.entries()) {
      const at = `changes[${index}] ${path}`;
      const found = files.get(path);
      if (kind === 'deleted') checks.same(at, says, undefined, found);
      else if (after?.type !== 'file') checks.same(at, says, true, found !== undefined);
      else if (after.content !== undefined && found !== unread) checks.same(at, says, after.content, found);
      else checks.same(at, says, true, found !== undefined);
    }
  } catch (error) {
    checks.contradicted('left', says, 'an archive', messageOf(error));
  }
}

/** A second name of a file, or a file with holes, whose content is not compared. */
const unread = 'not read';

/** The hash of each file by its path in the workspace; for what is no file, what it is. */
async function filesOf(compressed: ReadStream, byteSize: number): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const room = new PathRoom();
  const archive = createZstdDecompress();
  // Whoever reads the archive gets the error.
  pipeline(compressed, archive, () => undefined);
  for await (const { header, content } of tarEntries(atMost(byteSize, archive))) {
    const [, path = ''] = /^[^/]*\/(.*?)\/?$/s.exec(nameText(header.name)) ?? [];
    if (!room.take(path)) throw tooManyPaths();
    if (!['0', '7'].includes(header.flag) || header.sparseSize !== undefined) {
      files.set(path, header.flag === '5' || header.flag === '2' ? 'no file' : unread);
      continue;
    }
    const hash = createHash('sha256');
    for await (const chunk of content()) hash.update(chunk);
    files.set(path, hash.digest('hex'));
  }
  return files;
}

/** A small file can be compressed from a huge one, and its record say so. */
async function* atMost(byteSize: number, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = byteSize;
  for await (const chunk of chunks) {
    left -= chunk.length;
    if (left < 0) throw new Error('it is longer than the ledger says');
    yield chunk;
  }
}
