import type { Readable } from 'node:stream';
import { rewritten } from '../archive/write-archive.ts';
import type { Capabilities } from '../port/engine-port.ts';

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

/** The archive with the container's ids. */
export function withContainerIds(archive: Readable, first: FirstIds): Readable {
  return rewritten(archive, (header) => ({
    ...header,
    uid: inContainer(header.uid, first.uid),
    gid: inContainer(header.gid, first.gid),
  }));
}
