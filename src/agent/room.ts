import { statfs } from 'node:fs/promises';
import { OffsiteError } from '../offsite-error.ts';

/**
 * Bytes to be free in the data folder before a trial is begun: its result, and those of the trials that run already. More than the
 * ledger's reserve, so that giving that back doesn't let another trial in.
 */
const neededBytes = 10 * 1024 ** 2;

/**
 * Throws `DISK_FULL` where the results of another trial might not find room. What runs already goes on, and what is finished is kept.
 */
export async function requireRoomForResults(dataFolder: string): Promise<void> {
  const { bavail, bsize } = await statfs(dataFolder);
  const free = bavail * bsize;
  if (free >= neededBytes) return;
  throw new OffsiteError(
    `the disk of ${dataFolder} is full: ${Math.floor(free / 1024)} KiB are free; no more trials are begun`,
    {
      code: 'DISK_FULL',
      kind: 'infrastructure',
      hint: 'Free some space, then `offsite resume`. What is finished is kept and reported.',
    },
  );
}
