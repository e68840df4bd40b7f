import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openDaemonPlace } from '../daemon/daemon-place.ts';
import { held } from '../daemon/let-go.ts';
import { type CuttingProxy, cuttingProxy } from '../engine/cutting-proxy.ts';
import { openServingPlace } from '../executor/serving-place.ts';
import { byRoot } from '../needs.ts';
import { openFlakyService } from './flaky-service.ts';
import { type Ended, type Running, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const asRoot = (program: string, ...args: string[]) => void execFileSync(program, args);

const cases = [
  { id: 'quick', verify: 'true', variables: { act: 'true' } },
  { id: 'slow', verify: 'true', variables: { act: 'touch begun; sleep 600' } },
];

/** Starts a batch, and waits until its slow trial works. */
async function inTheMiddle(place: Place, proxy: CuttingProxy, env: Record<string, string> = {}) {
  const args = ['run', place.suite({ cases }), '-c', '2'];
  const running = start(place, args, { env: { ...env, DOCKER_HOST: proxy.host } });
  await running.printed(/✓ quick/);
  await running.printed(/longest: slow/);
  return running;
}

/** Nothing that was printed looks like a defect; and what is left is told once, with what to do. */
function expectCleanEnd({ stdout, stderr }: Ended, { left }: { left: boolean }): void {
  expect(stderr).not.toMatch(/defect|SuppressedError|^\W*at .*:\d+:\d+/m);
  expect(stdout).not.toMatch(/defect|SuppressedError/);
  const reported = stderr.match(/something may be left on the engine unix:\/\/\S+ \(DOCKER_HOST\)/g) ?? [];
  expect(reported, stderr).toHaveLength(left ? 1 : 0);
  if (left) expect(stderr).toContain('The next command that runs trials there removes it.');
}

/** What an interrupted run prints. */
const tableOfWhatThereIs = expect.stringMatching(/^all .*\ninterrupted by SIGTERM: /m);

/** Kills after so long: milliseconds that no end may take, with an engine that answers nothing. */
async function endedWithin(running: Running, ms: number): Promise<Ended> {
  const late = setTimeout(() => running.kill('SIGKILL'), ms);
  try {
    return await running.ended;
  } finally {
    clearTimeout(late);
  }
}

describe.concurrent('at SIGTERM', () => {
  for (const state of ['isDown', 'isHung'] as const) {
    const engine = state === 'isDown' ? 'an engine that is down' : 'an engine that hangs';

    test(`offsite run with ${engine} exits 130, and says what may be left`, async () => {
      using place = openPlace();
      await using proxy = await cuttingProxy();
      const running = await inTheMiddle(place, proxy);
      proxy[state] = true;
      running.kill('SIGTERM');
      const ended = await endedWithin(running, 60_000);
      expect([ended.exitCode, ended.stdout], ended.stderr).toEqual([130, tableOfWhatThereIs]);
      expectCleanEnd(ended, { left: true });
      expect(ended.stderr).toContain('`offsite resume` continues');
      if (state === 'isHung') expect(ended.stderr).toMatch(/^still stopping the trials .*, for \d+ s$/m);
    });

    test(`offsite check with ${engine} ends`, async () => {
      using place = openPlace();
      await using proxy = await cuttingProxy();
      const suite = place.suite({ cases: [{ id: 'slow', verify: 'sleep 600' }] });
      const junit = join(place.folder, 'check.xml');
      const args = ['check', suite, '--junit', junit];
      const running = start(place, args, { env: { DOCKER_HOST: proxy.host } });
      await running.printed(/longest: slow/);
      // It hears of the signal before its engine is gone: else it may end with what the engine did to its
      // case.
      proxy.isHung = true;
      running.kill('SIGTERM');
      await running.printed(/^SIGTERM: stopping/m);
      // At once: whoever runs the job may not wait for the engine.
      const skipped = '<skipped message="has no result: interrupted by SIGTERM"/>';
      await expect.poll(() => existsSync(junit) && readFileSync(junit, 'utf8')).toContain(skipped);
      proxy[state] = true;
      const ended = await endedWithin(running, 60_000);
      expect([ended.exitCode, ended.stdout], ended.stderr).toEqual([130, '']);
      expectCleanEnd(ended, { left: true });
    });

    test(`offsite serve with ${engine} ends`, async () => {
      await using at = openServingPlace();
      await using proxy = await cuttingProxy();
      const serving = await at.serve({ env: { DOCKER_HOST: proxy.host } });
      await serving.ask('evals.start', {
        suite: { id: 'small', name: 'small', prompt: 'Do it.' },
        cases: [{ id: 'a', name: 'a', verify: 'true', variables: { act: 'sleep 600' } }],
        variants: [
          { model: 'none', credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' } },
        ],
        trials: 1,
      });
      await serving.printed(/"running":\{"harness":1\}/);
      proxy[state] = true;
      serving.kill('SIGTERM');
      const ended = await endedWithin(serving, 60_000);
      expect(ended.exitCode, ended.stderr).toBe(0);
      expectCleanEnd(ended, { left: true });
    });

    test(`and again, offsite daemon with ${engine} ends`, async () => {
      await using at = await openDaemonPlace();
      await using proxy = await cuttingProxy();
      at.configure({ profiles: { worker: { run: held } }, concurrency: 1 });
      await at.queue(['a', 'b']);
      const daemon = await at.daemon([], { DOCKER_HOST: proxy.host });
      await at.once(({ running }) => running.some(({ phase }) => phase === 'harness'));
      proxy[state] = true;
      daemon.kill('SIGTERM');
      await daemon.printed(/the daemon is draining/);
      // Signals within a second count as one.
      await delay(1_500);
      daemon.kill('SIGTERM');
      const ended = await endedWithin(daemon, 60_000);
      expect(ended.exitCode, ended.stderr).toBe(130);
      expect(ended.stderr).toMatch(/"queued":2.*the daemon has ended/);
      expectCleanEnd(ended, { left: true });
    });
  }

  test('and again, offsite run ends at once, and says that sandboxes may be left', async () => {
    using place = openPlace();
    await using proxy = await cuttingProxy();
    const running = await inTheMiddle(place, proxy);
    proxy.isHung = true;
    running.kill('SIGTERM');
    await running.printed(/stopping the trials/);
    await delay(1_500);
    running.kill('SIGTERM');
    const ended = await endedWithin(running, 10_000);
    expect([ended.exitCode, ended.stdout]).toEqual([130, '']);
    expect(ended.stderr).toContain('SIGTERM: ended at once. Sandboxes may be left on the engine');
    expectCleanEnd(ended, { left: false });
  });

  test('offsite run without engine and service exits 130', async () => {
    using place = openPlace();
    await using proxy = await cuttingProxy();
    await using service = await openFlakyService(place);
    const running = await inTheMiddle(place, proxy, service.env);
    await running.printed(/✓ quick/);
    for (const operation of service.asked) service.down.add(operation);
    proxy.isDown = true;
    await running.printed(/trials wait for the engine/);
    running.kill('SIGTERM');
    const ended = await endedWithin(running, 60_000);
    expect([ended.exitCode, ended.stdout], ended.stderr).toEqual([130, tableOfWhatThereIs]);
    expectCleanEnd(ended, { left: true });
  });

  byRoot.test('offsite run without an engine, on a full disk, exits 130', async () => {
    using place = openPlace();
    await using proxy = await cuttingProxy();
    await using disk = smallDisk(place);
    const running = await inTheMiddle(place, proxy);
    disk.fill();
    proxy.isDown = true;
    running.kill('SIGTERM');
    const ended = await endedWithin(running, 60_000);
    expect([ended.exitCode, ended.stdout], ended.stderr).toEqual([130, tableOfWhatThereIs]);
    expectCleanEnd(ended, { left: true });
  });
});

/** A disk of its own under the data folder. */
function smallDisk({ dataFolder }: Place): AsyncDisposable & { fill(): void } {
  mkdirSync(dataFolder);
  asRoot('mount', '-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', dataFolder);
  return {
    fill() {
      for (const size of [2 ** 20, 4096]) {
        try {
          for (;;) appendFileSync(join(dataFolder, 'filler'), Buffer.alloc(size));
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      asRoot('umount', '--lazy', dataFolder);
    },
  };
}
