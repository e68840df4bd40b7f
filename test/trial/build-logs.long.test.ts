import { randomUUID } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openTrialBench } from './trial-bench.ts';

/** The steps of a trial's environment, with what they printed. */
function stepsOf(ledger: Ledger, { environment = [] }: TrialRecord) {
  return environment.map(({ log, image, phase, description }) => ({
    phase,
    description,
    isSnapshot: image !== undefined,
    log: log === undefined ? undefined : ledger.blobs.read(log).toString(),
  }));
}

test('a trial shows what its prepare printed, also if another process ran it before', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-build-logs-'));
  using ledger = new Ledger(folder.path, systemClock, { redactor: new Redactor(['a-key-of-some-length']) });
  const prepare = `echo made ${randomUUID()}; echo a-key-of-some-length >&2`;
  const expected = {
    phase: 'prepare',
    description: 'prepare of a case',
    isSnapshot: true,
    log: expect.stringMatching(/^made [-0-9a-f]{36}\n[^k]*\n$/),
  };
  for (const _ of ['the first process', 'another one']) {
    await using bench = await openTrialBench({ buildLogs: ledger.buildLogs });
    const result = await bench.trial('true', { prepare, verify: 'true', caseName: 'a case' });
    expect(stepsOf(ledger, result)).toEqual([expected]);
    expect(result.environment?.[0]?.durationMs).toBeGreaterThan(0);
  }
});

test('so does one whose prepare runs in its own sandbox, as it leaves a process', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-build-logs-'));
  using ledger = new Ledger(folder.path, systemClock);
  await using bench = await openTrialBench({ buildLogs: ledger.buildLogs });
  const prepare = 'echo a server; (sleep 600 >/dev/null 2>&1 &)';
  const result = await bench.trial('true', { prepare, verify: 'true', caseName: 'a case' });
  expect(stepsOf(ledger, result)).toEqual([
    { phase: 'prepare', description: 'prepare of a case', isSnapshot: false, log: 'a server\n' },
  ]);
});
