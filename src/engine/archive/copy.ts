import { OffsiteError } from '../../base/offsite-error.ts';
import { carryWith } from './carry.ts';
import { type CopyLimits, openArchive, unpackArchive } from './raw-archive.ts';
import { type MaybeSparse, tarInstead } from './sparse.ts';

/**
 * Copies a folder from one container to the same path of another. It streams the engine's archive back to the
 * engine unchanged, so owners, modes, links, names and times (to the second) are kept. Nothing is unpacked
 * here. Existing files in the target stay unless they have the same name. Files with holes are copied as
 * carry.ts does it. Throws `ENGINE_NOT_FOUND`; `ENGINE_NO_FOLDER` for anything but a folder, including a
 * symlink to one; `ENGINE_TOO_LARGE`.
 */
export async function copyBetween(
  from: MaybeSparse,
  to: string,
  path: string,
  limits: CopyLimits,
): Promise<void> {
  try {
    using source = await openArchive(from, path, limits);
    if (!source.isFolder) throw noFolder(path);
    await unpackArchive(from.port, { id: to, path }, source.archive, limits.signal);
  } catch (error) {
    const tar = await tarInstead(error, from);
    const all = { keeps: () => true, links: 'all', maxEntries: Number.POSITIVE_INFINITY } as const;
    await carryWith(tar, from, to, path, { ...all, ...limits });
  }
}

function noFolder(path: string): OffsiteError {
  return new OffsiteError(`${path} is not a folder`, { code: 'ENGINE_NO_FOLDER', kind: 'infrastructure' });
}
