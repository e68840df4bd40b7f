import { existsSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { versionOf } from '../../src/base/version.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { runsOf } from '../cli/ask.ts';
import { openFlakyService } from '../cli/flaky-service.ts';
import { offsite, start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { letGo, untilLetGo } from './let-go.ts';

const cases = [
  { id: 'quick', verify: 'true', variables: { act: 'true' } },
  { id: 'slow', verify: 'true', variables: { act: untilLetGo } },
];

/** Milliseconds; only a hang reaches them. */
const timeout = 180_000;

describe.concurrent('offsite resume', { timeout }, () => {
  test('goes on after an interruption: what was finished is not run again, and the suite file is not needed', async () => {
    using place = openPlace();
    const suite = place.suite({ cases });
    const running = start(place, ['run', suite, '-c', '2']);
    const [, batch = ''] = await running.printed(/batch (\S+): 2 trials/);
    await running.printed(/✓ quick/);
    running.kill('SIGINT');
    expect((await running.ended).exitCode).toBe(130);
    place.write('suite.yaml', 'this is no suite any more');
    place.write('offsite.yaml', '{}');

    const resuming = start(place, ['resume', batch, '--json']);
    await resuming.printed(/batch \S+: 1 of 2 trials/);
    await letGo(batch, resuming.ended);
    const resumed = await resuming.ended;
    expect(JSON.parse(resumed.stdout)).toMatchObject([{ batchId: batch, passed: 2, unreported: 0 }]);
    const runs = await runsOf(place, 'quick', 'slow');
    expect(runs.map(({ trials }) => trials?.map(({ status }) => status))).toEqual([
      ['reported'],
      ['reported'],
    ]);

    const again = await offsite(place, ['resume', batch]);
    expect([again.exitCode, again.stderr]).toEqual([
      2,
      expect.stringContaining(`batch ${batch} is finished`),
    ]);
    expect((await offsite(place, ['resume'])).stdout).toMatch(/^nothing to resume in \S+\n$/);
  });

  test('leaves a batch alone that another process works on, and says so', async () => {
    using place = openPlace();
    const running = start(place, ['run', place.suite({ cases }), '-c', '2']);
    const [, batch = ''] = await running.printed(/batch (\S+): 2 trials/);
    await running.printed(/✓ quick/);
    const other = await offsite(place, ['resume', batch]);
    expect(other.exitCode).toBe(3);
    expect(other.stderr).toMatch(
      new RegExp(
        `another process works on batch ${batch}: process ${running.pid}, since [\\d-]+T\\S+; wait for it`,
      ),
    );
    running.kill('SIGINT');
    expect((await running.ended).exitCode).toBe(130);
  });

  test('says of a batch that this machine does not have that it is unknown', async () => {
    using place = openPlace();
    place.suite({ cases });
    new Ledger(place.dataFolder, systemClock)[Symbol.dispose]();
    const { exitCode, stderr } = await offsite(place, ['resume', 'batch_of_nobody']);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining(`the data folder ${place.dataFolder} has no batch batch_of_nobody`),
    ]);
  });
});

test('a refused report is parked; it can be exported, queued again, and dropped, but not by mistake', {
  timeout,
}, async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const { env } = service;
  service.down.add('evals.reportTrial');
  await offsite(place, ['run', place.suite({ cases: [{ id: 'one', verify: 'true' }] })], { env });
  {
    using ledger = new Ledger(place.dataFolder, systemClock);
    for (const { key: trial } of ledger.outbox.pending())
      ledger.outbox.become(trial, 'parked', { answer: '403 Forbidden', version: versionOf() });
  }
  const outbox = (...args: string[]) => offsite(place, ['data', 'outbox', ...args], { env });
  const [report] = JSON.parse((await outbox('list', '--json')).stdout);
  expect(report).toMatchObject({ state: 'parked', answer: '403 Forbidden' });
  const id = String(report.trial);

  const file = join(place.folder, 'kept.json');
  expect((await outbox('export', file)).exitCode).toBe(0);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject([
    { id: Number(id), report: { outcome: { passed: true } } },
  ]);
  expect((await outbox('export', file)).exitCode).toBe(2);

  const unsure = await outbox('drop', id);
  expect([unsure.exitCode, unsure.stderr]).toEqual([2, expect.stringContaining('--yes')]);
  expect((await outbox('retry', '99')).stderr).toContain('no result 99 waits');
  expect((await outbox('retry', id)).exitCode).toBe(0);
  service.down.clear();
  const sent = await outbox('send');
  expect(sent).toMatchObject({ exitCode: 0, stdout: 'nothing waits to be reported\n' });
  expect(await service.ask('evals.runs.list', { caseId: 'one' })).toMatchObject({
    runs: [{ trials: [{ status: 'reported' }] }],
  });
});

test('the ledger is checked, backed up and pruned by commands that say what they found and did', {
  timeout,
}, async () => {
  using place = openPlace();
  const { dataFolder } = place;
  await offsite(place, ['run', place.suite({ cases: [{ id: 'one', verify: 'true' }] })]);
  const ledgerCommand = (...args: string[]) => offsite(place, ['data', ...args]);
  expect(await ledgerCommand('check')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('the ledger is whole'),
  });
  const target = join(place.folder, 'copy');
  expect((await ledgerCommand('backup', target)).exitCode).toBe(0);
  expect(existsSync(join(target, 'ledger.db'))).toBe(true);
  const dry = await ledgerCommand('prune', '--older-than', '30d', '--dry-run');
  expect(dry.stdout).toContain('would remove 0 batches');
  const all = await ledgerCommand('prune', '--older-than', '0d', '--dry-run');
  expect(all.stdout).toContain('would remove 1 batch, 1 trial');
  {
    using ledger = new Ledger(dataFolder, systemClock);
    const row = ledger.records.get('SELECT result FROM trials');
    truncateSync(ledger.blobs.pathOf(String(row?.result)), 20);
  }
  const damaged = await ledgerCommand('check');
  expect(damaged.exitCode).toBe(3);
  expect(damaged.stdout).toMatch(/damaged: the result of trial 0 of run \S+/);
});
