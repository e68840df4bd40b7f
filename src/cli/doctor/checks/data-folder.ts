import { randomUUID } from 'node:crypto';
import { open, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { openDataFolder } from '../../../ledger/data-folder.ts';
import { requireRoom } from '../../data-folder.ts';
import { byteSize } from '../byte-size.ts';
import type { Check } from '../check.ts';

/** Bytes. Less is enough to start, but not for long. */
const roomyBytes = 1024 ** 3;

export const dataFolder: Check = {
  name: 'data folder',
  async run({ dataFolder: folder }) {
    requireRoom(folder);
    openDataFolder(folder);
    await writeAndRemove(folder);
    const { bavail, bsize } = await statfs(folder);
    const free = bavail * bsize;
    const found = `${folder}, ${byteSize(free)} free`;
    if (free >= roomyBytes) return { state: 'ok', found };
    return { state: 'warn', found, fix: 'Free some space, or name another folder: --data-folder.' };
  },
};

/** Writes like the ledger: to the disk, not only to its cache. */
async function writeAndRemove(folder: string): Promise<void> {
  const path = join(folder, `.doctor-${randomUUID()}`);
  try {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile('can be written');
    await file.sync();
  } finally {
    await rm(path, { force: true });
  }
}
