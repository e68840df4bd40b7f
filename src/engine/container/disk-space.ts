import { statfs } from 'node:fs/promises';
import { diskMeasure } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { Capabilities } from '../port/capabilities.ts';

export interface DiskSpace {
  freeBytes: number;
  /** What stays free for the rest of the machine: no trial starts below it, and running ones are ended. */
  reserveBytes: number;
}

/** The space of the disk that a folder of this machine is on; undefined if there is no such folder. */
export async function diskSpace(folder: string): Promise<DiskSpace | undefined> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    const reserveBytes = Math.min(diskMeasure.bytes.reserve, Math.floor((blocks * bsize) / 20));
    return { freeBytes: bavail * bsize, reserveBytes };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return undefined;
  }
}

/**
 * The space of the disk on which an engine keeps images, build caches and containers. Undefined if the engine
 * is on another machine, or its folder is not visible.
 */
export function engineSpace({
  address,
  capabilities: { rootFolder },
}: EngineDisk): Promise<DiskSpace | undefined> {
  const isHere = address.startsWith('unix:') && rootFolder !== '';
  return isHere ? diskSpace(rootFolder) : Promise.resolve(undefined);
}

/** Throws `DISK_FULL` if the disk of every engine has reached its reserve. */
export async function requireEngineRoom(engines: readonly EngineDisk[]): Promise<void> {
  for (const [index, engine] of engines.entries()) {
    const space = await engineSpace(engine);
    if (space === undefined || space.freeBytes >= space.reserveBytes + diskMeasure.bytes.margin) return;
    if (index === engines.length - 1)
      throw diskReserveReached(engine.capabilities.rootFolder, space, 'no more trials start');
  }
}

interface EngineDisk {
  address: string;
  capabilities: Pick<Capabilities, 'rootFolder'>;
}

export function diskReserveReached(
  folder: string,
  { freeBytes, reserveBytes }: DiskSpace,
  then: string,
): OffsiteError {
  const [free, reserve] = [freeBytes, reserveBytes].map((bytes) => Math.floor(bytes / 2 ** 20));
  return new OffsiteError(
    `the disk of ${folder} has ${free} MiB left, and ${reserve} MiB stay in reserve: ${then}`,
    {
      code: 'DISK_FULL',
      kind: 'infrastructure',
      hint: 'Free some space, for example with `offsite engine images prune`, then run `offsite resume`.',
    },
  );
}
