import { chmodSync, mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { askDaemon } from '../../src/cli/daemon/ask-daemon.ts';
import { openPlace } from '../cli/place.ts';

/** A user who owns nothing here. */
const nobody = 65_534;

test('who may not look into the data folder is not told that no daemon runs there', async () => {
  using place = openPlace();
  mkdirSync(place.dataFolder);
  const isRoot = process.geteuid?.() === 0;
  chmodSync(place.dataFolder, isRoot ? 0o700 : 0o000);
  if (isRoot) process.seteuid?.(nobody);
  try {
    await expect(askDaemon(place.dataFolder, 'GET', '/status')).rejects.toMatchObject({
      code: 'DAEMON_OF_ANOTHER_USER',
      kind: 'input',
      message: expect.stringContaining('EACCES'),
    });
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(place.dataFolder, 0o700);
  }
});
