import { statfs } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import { diskMeasure } from '../../bounds/sandbox.ts';
import type { Capabilities } from '../port/engine-port.ts';

/**
 * What is free, and what of it stays free for the rest of the machine: no trial starts below that, and
 * running ones are ended. A file system may run out of files (inodes) before it runs out of bytes.
 */
export interface DiskSpace {
  freeBytes: number;
  reserveBytes: number;
  freeFiles: number;
  /** 0 if the file system makes as many as it needs. */
  reserveFiles: number;
  /** The share of the disk of one file, even if it is empty; 0 if there may be as many as needed. */
  bytesPerFile: number;
}

/** The space of the disk that a folder of this machine is on; undefined if there is no such folder. */
export async function diskSpace(folder: string): Promise<DiskSpace | undefined> {
  try {
    const { bavail, blocks, bsize, files, ffree } = await statfs(folder);
    return {
      freeBytes: bavail * bsize,
      reserveBytes: Math.min(diskMeasure.bytes.reserve, Math.floor((blocks * bsize) / 20)),
      freeFiles: ffree,
      reserveFiles: Math.floor(files / 20),
      bytesPerFile: files === 0 ? 0 : (blocks * bsize) / files,
    };
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

/** Whether only the reserve is left, or so little more that it is gone before anything else is noticed. */
export function isReserveReached(space: DiskSpace): boolean {
  return space.freeBytes < space.reserveBytes + diskMeasure.bytes.margin || areFilesShort(space);
}

/** Whether what is left of the files is the reserve, or little more. */
export function areFilesShort({ freeFiles, reserveFiles }: DiskSpace): boolean {
  return freeFiles < reserveFiles * 1.5;
}

/** Throws `DISK_FULL` if the disk of every engine has reached its reserve. */
export async function requireEngineRoom(engines: readonly EngineDisk[]): Promise<void> {
  for (const [index, engine] of engines.entries()) {
    const space = await engineSpace(engine);
    if (space === undefined || !isReserveReached(space)) return;
    if (index === engines.length - 1)
      throw diskReserveReached(engine.capabilities.rootFolder, space, 'no more trials start');
  }
}

/**
 * Does work that takes the disk of an engine in ways that no limit of a sandbox covers, such as a build. Its
 * signal aborts with `DISK_FULL` when the reserve is reached.
 */
export async function withinReserve<T>(
  engine: EngineDisk & { port: { clock: Clock } },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const full = new AbortController();
  const done = new AbortController();
  const look = async () => {
    for (;;) {
      const space = await engineSpace(engine);
      if (space === undefined) return;
      if (isReserveReached(space))
        return full.abort(
          diskReserveReached(engine.capabilities.rootFolder, space, 'what fills it is ended'),
        );
      await engine.port.clock.sleep(diskMeasure.time.glance, done.signal);
    }
  };
  // It rejects when the work is done.
  look().catch(() => undefined);
  try {
    return await work(AbortSignal.any([signal, full.signal]));
  } catch (error) {
    signal.throwIfAborted();
    full.signal.throwIfAborted();
    throw error;
  } finally {
    done.abort(new Error('the work is done'));
  }
}

interface EngineDisk {
  address: string;
  capabilities: Pick<Capabilities, 'rootFolder'>;
}

export function diskReserveReached(folder: string, space: DiskSpace, then: string): OffsiteError {
  const { freeFiles, reserveFiles } = space;
  const [free, reserve] = [space.freeBytes, space.reserveBytes].map((bytes) => Math.floor(bytes / 2 ** 20));
  const left = areFilesShort(space)
    ? `room for ${freeFiles} files left, and that for ${reserveFiles} files stays`
    : `${free} MiB left, and ${reserve} MiB stay`;
  return infrastructureError('DISK_FULL', `the disk of ${folder} has ${left} in reserve: ${then}`, {
    hint: 'Free some space, for example with `offsite engine images prune`, then run `offsite resume`.',
  });
}
