import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { byteSize } from '../byte-size.ts';
import { engineCheck } from '../check.ts';

/** The base image, some snapshots, and what trials write meanwhile. */
const roomyBytes = 5 * 1024 ** 3;

/** Room where the engine keeps images and containers, when that is on this machine. */
export const engineDisk = engineCheck("engine's disk", async ({ address, capabilities: { rootFolder } }) => {
  if (!address.startsWith('unix:') || rootFolder === '' || !existsSync(rootFolder)) {
    return {
      state: 'skipped',
      found: `${rootFolder || 'its folder'} is not on this machine, or not to be seen`,
    };
  }
  const { bavail, bsize } = await statfs(rootFolder);
  const free = bavail * bsize;
  const found = `${rootFolder}, ${byteSize(free)} free`;
  if (free >= roomyBytes) return { state: 'ok', found };
  return { state: 'warn', found, mend: 'Free some space: `offsite images prune`, `docker system df`.' };
});
