import { Readable } from 'node:stream';
import { paddingOf, tarEntries } from '../archive/tar-entries.ts';
import { archiveEnd, tarHeader } from '../archive/write-header.ts';
import type { Capabilities } from '../port/capabilities.ts';

/**
 * The ids of the engine's machine that stand for root's in containers: 0, unless the engine runs with
 * `userns-remap`. It then gives the machine's ids in lists of processes and in archives, and takes the
 * container's in what it unpacks.
 */
export interface FirstIds {
  uid: number;
  gid: number;
}

/**
 * The engine does not report them in another way: it keeps what belongs to a mapping in a folder named after
 * it.
 */
export function firstIdsOf({
  security,
  rootFolder,
}: Pick<Capabilities, 'security' | 'rootFolder'>): FirstIds {
  const [, uid, gid] = (security.userns && /\/(\d+)\.(\d+)$/.exec(rootFolder)) || [];
  return { uid: Number(uid ?? 0), gid: Number(gid ?? 0) };
}

/** The id in the container. One that is below the first is nobody's there. */
export function inContainer(id: number, first: number): number {
  return id < first ? nobody : id - first;
}

const nobody = 65_534;

/** The archive with the container's ids. It fails as the given one does. */
export function withContainerIds(archive: Readable, first: FirstIds): Readable {
  const changed = Readable.from(changedEntries(archive, first), { objectMode: false });
  // The archive may be destroyed by who opened it, and the reader of this one must learn of it.
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
