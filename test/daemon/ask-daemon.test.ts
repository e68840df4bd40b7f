import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { controlSocketOf } from '../../src/agent/daemon/control-socket-path.ts';
import { askDaemon } from '../../src/cli/daemon/ask-daemon.ts';
import { offsite } from '../cli/offsite.ts';
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

test('who queues a suite is told that the daemon was killed, although its socket is left', async () => {
  using place = openPlace();
  mkdirSync(place.dataFolder, { mode: 0o700 });
  const socket = controlSocketOf(place.dataFolder);
  const listen =
    "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
  spawnSync(process.execPath, ['-e', listen, socket]);
  expect(existsSync(socket)).toBe(true);
  const suite = place.suite({ cases: [{ id: 'a', verify: 'true' }] });
  const { exitCode, stdout, stderr } = await offsite(place, ['daemon', 'enqueue', suite]);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain(`no daemon runs in ${place.dataFolder} yet`);
});

test('while offsite.yaml is broken, the daemon of a named data folder is asked, and the error says so', async () => {
  using place = openPlace();
  const config = ['--config', place.write('offsite.yaml', 'models: [')];
  const unnamed = await offsite(place, ['daemon', 'status', ...config], { dataFolder: null });
  expect(unnamed.exitCode).toBe(2);
  expect(unnamed.stderr).toMatch(/offsite\.yaml:1:\d+: .*\n.*name its data folder with --data-folder/s);
  const named = await offsite(place, ['daemon', 'status', ...config]);
  expect(named.stderr).toContain(
    `no daemon runs in this data folder: nothing listens on ${place.dataFolder}`,
  );
});
