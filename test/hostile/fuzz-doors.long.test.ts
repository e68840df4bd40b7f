import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { askDaemon } from '../../src/cli/daemon/ask-daemon.ts';
import { type Running, start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { openDaemonPlace } from '../daemon/daemon-place.ts';
import { seeded } from './fuzz.ts';
import { knockOften } from './knock.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 300_000;
const seed = 20_261_122;
const keptMiB = 100;
const keptFiles = 8;

/** Open files and resident MiB of a process. */
function stateOf({ pid }: Running): { files: number; mib: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
  return { files: readdirSync(`/proc/${pid}/fd`).length, mib: kib / 1024 };
}

async function expectAsBefore(running: Running, before: { files: number; mib: number }): Promise<void> {
  await expect.poll(() => stateOf(running).files, { timeout: 40_000 }).toBeLessThan(before.files + keptFiles);
  expect(stateOf(running).mib - before.mib).toBeLessThan(keptMiB);
}

test('1,500 hostile connections to `serve` leave it as it was, and it still answers', {
  timeout,
}, async () => {
  using place = openPlace();
  const serving = start(place, ['serve', '--quiet']);
  try {
    const [, url = ''] = await serving.printed(/Eval Service at (http:\S+);/);
    const ask = () => fetch(`${url}/openapi.json`);
    expect((await ask()).status).toBe(200);
    const before = stateOf(serving);
    await knockOften(seeded(seed), { port: Number(new URL(url).port) }, 1_500);
    expect((await ask()).status).toBe(200);
    await expectAsBefore(serving, before);
  } finally {
    serving.kill('SIGTERM');
  }
  expect((await serving.ended).exitCode).toBe(0);
});

test('1,500 hostile connections to a daemon, by its socket and its port, leave it as it was', {
  timeout,
}, async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const daemon = await at.daemon(['--listen', '127.0.0.1:0']);
  const [, url = ''] = await daemon.printed(/"http":"(http:[^"]+)"/);
  const { dataFolder } = at.place;
  await askDaemon(dataFolder, 'GET', '/status');
  const before = stateOf(daemon);
  await knockOften(seeded(seed + 1), { path: join(dataFolder, 'control.sock') }, 750);
  await knockOften(seeded(seed + 2), { port: Number(new URL(url).port) }, 750);
  expect(await askDaemon(dataFolder, 'GET', '/status')).toMatchObject({ mode: 'working' });
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  await expectAsBefore(daemon, before);
});
