import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { byRoot } from '../needs.ts';
import { offsite, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const asRoot = (program: string, ...args: string[]) => void execFileSync(program, args);

/** A disk of its own under the data folder. */
async function smallDisk({ dataFolder }: Place, options: string): Promise<AsyncDisposable> {
  mkdirSync(dataFolder);
  asRoot('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', dataFolder);
  return {
    async [Symbol.asyncDispose]() {
      asRoot('umount', '--lazy', dataFolder);
    },
  };
}

const cases = [{ id: 'one', verify: 'true' }];

test('a data folder that cannot be one is said to be, with exit code 3', async () => {
  using place = openPlace();
  writeFileSync(place.dataFolder, 'a file');
  const { exitCode, stdout, stderr } = await offsite(place, ['run', place.suite({ cases })]);
  expect([exitCode, stdout]).toEqual([3, '']);
  expect(stderr).toContain('error: cannot keep results in');
  expect(stderr).toContain('name another folder: --data-folder');
  expect(stderr).not.toContain('    at ');
});

test.each(['doctor', 'check', 'run'])(
  'a data folder that the system cannot create is said to be by %s, and it does not hang',
  async (command) => {
    using place = openPlace();
    const needsSuite = command === 'check' || command === 'run';
    const args = [command, ...(needsSuite ? [place.suite({ cases })] : [])];
    const env = { OFFSITE_HOME: '/proc/nope' };
    const { exitCode, stdout, stderr } = await start(place, args, { env, dataFolder: null }).ended;
    expect(exitCode).toBe(3);
    expect(`${stdout}${stderr}`).toContain('cannot keep results in /proc/nope: the folder cannot be created');
    expect(stderr).not.toContain('    at ');
  },
);

byRoot.describe('a disk', () => {
  test('that is read-only is said to be, with exit code 3', async () => {
    using place = openPlace();
    await using _disk = await smallDisk(place, 'ro,size=40m');
    const { exitCode, stderr } = await offsite(place, ['run', place.suite({ cases })]);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('its disk is read-only');
    expect(stderr).not.toContain('    at ');
  });

  test('that is full from the start is said to be, with exit code 3, and nothing is started', async () => {
    using place = openPlace();
    await using _disk = await smallDisk(place, 'size=1m');
    const { exitCode, stdout, stderr } = await offsite(place, ['run', place.suite({ cases })]);
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toMatch(/error: the disk of \S+ is full: 1 MiB are free/);
    expect(existsSync(join(place.dataFolder, 'service.db'))).toBe(false);
  });
});
