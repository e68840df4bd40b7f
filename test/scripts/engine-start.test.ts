import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { EngineHome } from '../../scripts/set-up/engine-home.ts';
import { engineReady } from '../../scripts/set-up/engine-readiness.ts';
import type { Clock } from '../../src/base/clock.ts';

async function engineHome() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-start-'));
  const daemonFile = { path: join(folder.path, 'daemon.pid'), program: 'dockerd' };
  const home: EngineHome = {
    socketPath: join(folder.path, 'engine.sock'),
    logPath: join(folder.path, 'engine.log'),
    args: [],
    daemonFile,
    leftovers: [daemonFile],
  };
  await writeFile(home.logPath, 'starting\nfailed to load: Devices cgroup is not mounted\n');
  return { home, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** A clock whose sleeps are over at once, after doing what the test wants to happen meanwhile. */
function quickClock(meanwhile: () => Promise<void> = async () => undefined): Clock {
  let now = 0;
  return {
    now: () => now,
    monotonic: () => now,
    async sleep(ms) {
      now += ms;
      await meanwhile();
    },
  };
}

describe('waiting for an engine that was just started', () => {
  test('ends as soon as it answers', async () => {
    await using it = await engineHome();
    const server = createServer((_, response) => response.end('{"ApiVersion":"1.41"}'));
    const clock = quickClock(() => new Promise((resolve) => server.listen(it.home.socketPath, resolve)));
    await engineReady({ home: it.home, clock });
    server.close();
    expect(clock.now()).toBe(200);
  });

  test('ends at once when it dies, with its last words', async () => {
    await using it = await engineHome();
    const clock = quickClock();
    const waiting = engineReady({ home: it.home, clock, gone: async () => 'ended with exit code 1' });
    await expect(waiting).rejects.toThrow(/ended with exit code 1.*Devices cgroup is not mounted/s);
    expect(clock.now()).toBe(0);
  });

  test('ends at the deadline when it never answers', async () => {
    await using it = await engineHome();
    const clock = quickClock();
    const waiting = engineReady({ home: it.home, clock, deadlineMs: 1_000 });
    await expect(waiting).rejects.toMatchObject({ code: 'ENGINE_START_FAILED', kind: 'infrastructure' });
    expect(clock.now()).toBe(1_000);
  });
});
