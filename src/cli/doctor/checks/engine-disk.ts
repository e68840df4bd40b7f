import { engineSpace } from '../../../engine/container/disk-space.ts';
import { byteSize } from '../byte-size.ts';
import { engineCheck } from '../check.ts';

/** Bytes for the base image, some snapshots, and what running trials write. */
const roomyBytes = 5 * 1024 ** 3;

/** Free space where the engine keeps images and containers. */
export const engineDisk = engineCheck("engine's disk", async ({ address, capabilities }) => {
  const { rootFolder } = capabilities;
  const space = await engineSpace({ address, capabilities });
  if (space === undefined) {
    return {
      state: 'skipped',
      found: `${rootFolder || 'its folder'} is not on this machine, or not visible, so no reserve is kept there`,
    };
  }
  const { freeBytes, reserveBytes } = space;
  const found = `${rootFolder}, ${byteSize(freeBytes)} free, of which ${byteSize(reserveBytes)} stay in reserve`;
  if (freeBytes < roomyBytes)
    return {
      state: 'warn',
      found,
      fix: 'Free some space: `offsite engine images prune`, `docker system df`.',
    };
  return { state: 'ok', found };
});
