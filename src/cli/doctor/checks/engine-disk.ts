import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { byteSize } from '../byte-size.ts';
import { engineCheck } from '../check.ts';

/** Bytes for the base image, some snapshots, and what running trials write. */
const roomyBytes = 5 * 1024 ** 3;

/** Free space where the engine keeps images and containers, if that is on this machine. */
export const engineDisk = engineCheck("engine's disk", async ({ address, capabilities: { rootFolder } }) => {
  if (!address.startsWith('unix:') || rootFolder === '' || !existsSync(rootFolder)) {
    return {
      state: 'skipped',
      found: `${rootFolder || 'its folder'} is not on this machine, or not visible`,
    };
  }
  const { bavail, bsize } = await statfs(rootFolder);
  const free = bavail * bsize;
  const found = `${rootFolder}, ${byteSize(free)} free`;
  if (free >= roomyBytes) return { state: 'ok', found };
  return { state: 'warn', found, fix: 'Free some space: `offsite images prune`, `docker system df`.' };
});
