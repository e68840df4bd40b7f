import { OffsiteError } from '../../offsite-error.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { type CopyLimits, openArchive, unpackArchive } from './raw-archive.ts';

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
  limits: CopyLimits,
): Promise<void> {
  using source = await openArchive(port, from, path, limits);
  if (!source.isFolder) throw noFolder(path);
  await unpackArchive(port, { id: to, path }, source.archive, limits.signal);
}

function noFolder(path: string): OffsiteError {
  return new OffsiteError(`${path} is not a folder`, { code: 'ENGINE_NO_FOLDER', kind: 'infrastructure' });
}
