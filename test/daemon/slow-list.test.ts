import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/agent/daemon/metrics.ts';
import { poll } from '../../src/agent/daemon/poll.ts';
import { PollTargets } from '../../src/agent/daemon/poll-targets.ts';
import { foundRuns } from '../../src/bounds/service.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { clientOf } from '../client/client-of.ts';
import { json, scriptedService, silence } from '../client/scripted-service.ts';
import { testClock } from '../client/test-clock.ts';

test('a look for runs on ever slower pages ends before the watchdog ends the daemon', async () => {
  const runs = Array.from({ length: 20 }, (_, index) => ({ id: `run-${index}` }));
  await using service = await scriptedService(
    json(200, { page: 1, pageSize: 20, total: 1000, runs }),
    silence,
  );
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const folder = mkdtempSync(join(tmpdir(), 'offsite-slow-'));
  try {
    using ledger = new Ledger(folder, clock);
    const { daemon } = ConfigFile.parse({ daemon: { cases: ['a'] } });
    const targets = new PollTargets(daemon, { clock: { monotonic: () => 0 }, random: () => 0.5 });
    const log = pino({ level: 'silent' });
    const parts = { client, clock, ledger, service: 'here', targets, metrics: new Metrics(), log };
    const polled = poll(
      { ...parts, adopted: () => undefined, failed: () => undefined, unclear: new Set() },
      new AbortController().signal,
    );
    await expect.poll(() => service.received.length).toBe(2);
    clock.expire(foundRuns.time.look);
    await polled;
    expect(targets.failures).toEqual([
      { target: 'case a', failure: 'the service did not list all runs within 9 minutes' },
    ]);
    await expect.poll(() => service.open.size).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
