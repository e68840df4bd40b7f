import { Readable } from 'node:stream';
import { paddingOf, tarEntries } from '../archive/tar-entries.ts';
import { archiveEnd, tarHeader } from '../archive/write-archive.ts';
import type { Capabilities } from '../port/capabilities.ts';

/**
 * The ids of the engine's machine that stand for root's in containers: 0, unless the engine runs with
 * `userns-remap`. With that, the engine reports the machine's ids in lists of processes and in archives, but
 * expects the container's ids in archives that it unpacks.
 */
export interface FirstIds {
  uid: number;
  gid: number;
}

/**
 * Reads the ids from the path of the engine's folder, because the engine does not report them. It keeps what
 * belongs to a mapping in a folder named after the mapping.
 */
export function firstIdsOf({
  security,
  rootFolder,
}: Pick<Capabilities, 'security' | 'rootFolder'>): FirstIds {
  const [, uid, gid] = (security.userns && /\/(\d+)\.(\d+)$/.exec(rootFolder)) || [];
  return { uid: Number(uid ?? 0), gid: Number(gid ?? 0) };
}

/** The id in the container. An id below the first one belongs to the user `nobody` there. */
export function inContainer(id: number, first: number): number {
  return id < first ? nobody : id - first;
}

const nobody = 65_534;

/** The archive with the container's ids. If the given archive fails, so does the result. */
export function withContainerIds(archive: Readable, first: FirstIds): Readable {
  const changed = Readable.from(changedEntries(archive, first), { objectMode: false });
  // The caller that opened the archive may destroy it. Then the reader of the result must get the error.
  archive.once('error', (error) => changed.destroy(error));
  changed.once('close', () => archive.destroy());
  return changed;
}

async function* changedEntries(archive: Readable, first: FirstIds): AsyncGenerator<Buffer> {
  for await (const { header, content } of tarEntries(archive)) {
    const ids = { uid: inContainer(header.uid, first.uid), gid: inContainer(header.gid, first.gid) };
    const size = header.flag === '5' ? 0 : header.size;
    yield tarHeader({ ...header, ...ids, size });
    yield* content();
    yield Buffer.alloc(paddingOf(size));
  }
  yield archiveEnd;
}
