import { cpSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { openSloppyDouble } from '../doubles/sloppy.ts';
import { openFlakyService } from './flaky-service.ts';
import { main, offsite } from './offsite.ts';
import { openPlace } from './place.ts';
import { keptLedger } from './show/kept-ledger.ts';

type RunsPage = { runs: { trials: { status: string; sandboxId?: string }[] }[] };

// They wait for a service that does not answer, so they wait at the same time.
describe.concurrent('what the service shows', () => {
  test('a service that was restored from an older backup gets the results again', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    const file = place.suite({ trials: 2, cases: [{ id: 'one', verify: 'true' }] });
    const kept = join(place.folder, 'kept.db');
    service.alter = (operation, body) => {
      if (operation === 'evals.start') service.backUp(kept);
      return body;
    };
    expect((await offsite(place, ['run', file], { env })).exitCode).toBe(0);
    await service.restore(kept);
    const listed = async () => (await service.ask('evals.runs.list', { caseId: 'one' })) as RunsPage;
    expect((await listed()).runs[0]?.trials.map(({ status }) => status)).toEqual(['queued', 'queued']);
    const { exitCode, stderr } = await offsite(place, ['data', 'outbox', 'send'], { env });
    expect(exitCode, stderr).toBe(0);
    expect(stderr).toContain('the service has no result of 2 trials whose reports it had accepted');
    expect((await listed()).runs[0]?.trials.map(({ status }) => status)).toEqual(['reported', 'reported']);
  });

  test('`data prune` keeps results that the service has lost or cannot be asked about', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    const kept = join(place.folder, 'kept.db');
    service.backUp(kept);
    const file = place.suite({ cases: [{ id: 'one', verify: 'true' }] });
    expect((await offsite(place, ['run', file], { env })).exitCode).toBe(0);
    const prune = (more: string[], given: Record<string, string> = env) =>
      offsite(place, ['data', 'prune', '--older-than', '0d', ...more], { env: given });
    service.down.add('evals.runs.list');
    const unanswered = await prune([]);
    expect(unanswered).toMatchObject({ exitCode: 3, stdout: expect.stringMatching(/^removed 0 batches/) });
    expect(unanswered.stderr).toMatch(/cannot be asked whether it still has .*down for repairs/);
    const elsewhere = await prune([], {});
    expect(elsewhere).toMatchObject({ exitCode: 3, stdout: expect.stringMatching(/^removed 0 batches/) });
    expect(elsewhere.stderr).toContain('another one is configured here');
    service.down.clear();
    expect((await prune(['--dry-run'])).stdout).toMatch(/^would remove 1 batch, 1 trial/);
    await service.restore(kept);
    const lost = await prune([]);
    expect(lost).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^removed 0 batches/) });
    expect(lost.stderr).toContain('the service has no result of 1 trial whose reports it had accepted');
    expect((await prune([])).stdout).toMatch(/^removed 0 batches/);
    // As after `outbox drop`, if that is what one wants.
    await offsite(place, ['data', 'outbox', 'drop', '1', '--yes'], { env });
    service.down.add('evals.runs.list');
    expect(await prune(['--unreported'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^removed 1 batch/),
    });
  });

  test('`run`, `daemon --once` and `outbox send` do not succeed behind a proxy that only says yes, and heal once it is gone', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    service.swallowed.add('evals.reportTrial');
    const file = place.suite({ cases: [{ id: 'one', verify: 'true' }] });
    const run = await offsite(place, ['run', file], { env });
    expect([run.exitCode, run.stderr]).toEqual([
      3,
      expect.stringContaining('the service accepted it; it lists the trial without a result'),
    ]);
    expect(run.stderr).toContain('the service does not show 1 result yet');
    const config = ['--config', place.write('offsite.yaml', '{}')];
    const daemon = await offsite(place, ['daemon', '--once', ...config], { env });
    expect(daemon.exitCode, daemon.stderr).toBe(3);
    const swallowed = await offsite(place, ['data', 'outbox', 'send'], { env });
    expect([swallowed.exitCode, swallowed.stdout]).toEqual([3, expect.stringContaining('queued')]);
    service.swallowed.clear();
    const sent = await offsite(place, ['data', 'outbox', 'send'], { env });
    expect(sent).toMatchObject({ exitCode: 0, stdout: 'nothing waits to be reported\n' });
    const again = await offsite(place, ['daemon', '--once', ...config], { env });
    expect(again.exitCode, again.stderr).toBe(0);
  });

  test('a conflict is not believed while the service has no result: it is kept, claimed again and reported', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    service.refuse.set('evals.reportTrial', { _tag: 'Conflict', message: 'a newer lease has the trial' });
    const file = place.suite({ cases: [{ id: 'one', verify: 'true' }] });
    const run = await offsite(place, ['run', file], { env });
    expect(run.exitCode).toBe(3);
    expect(run.stderr).toMatch(/a newer lease has the trial; it lists the trial without a result/);
    expect(run.stderr).not.toContain('another Offsite process has run it');
    const refused = await offsite(place, ['data', 'outbox', 'send'], { env });
    expect([refused.exitCode, refused.stdout]).toEqual([3, expect.stringContaining('a newer lease')]);
    service.refuse.clear();
    const sent = await offsite(place, ['data', 'outbox', 'send'], { env });
    expect(sent).toMatchObject({ exitCode: 0, stdout: 'nothing waits to be reported\n' });
    const listed = (await service.ask('evals.runs.list', { caseId: 'one' })) as RunsPage;
    expect(listed.runs[0]?.trials.map(({ status }) => status)).toEqual(['reported']);
  });

  test('`run` does not succeed while the service lacks results of earlier batches, and says so', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    const file = place.suite({ cases: [{ id: 'one', verify: 'true' }] });
    service.down.add('evals.reportTrial');
    await offsite(place, ['run', file], { env });
    service.down.clear();
    {
      using ledger = new Ledger(place.dataFolder, systemClock);
      for (const { key: trial } of ledger.outbox.pending())
        ledger.outbox.become(trial, 'parked', { answer: 'no', version: 'another version' });
    }
    const run = await offsite(place, ['run', file, '--json'], { env });
    expect(JSON.parse(run.stdout)).toMatchObject({ passed: 1, unreported: 0 });
    expect(run.exitCode).toBe(3);
    expect(run.stderr).toContain('the service does not show 1 result of earlier batches yet');
    // What was refused is offered again by a later version.
    expect((await offsite(place, ['resume'], { env })).exitCode).toBe(0);
    expect((await offsite(place, ['run', file], { env })).exitCode).toBe(0);
  });

  test('a ledger that was restored from its backup takes what the service has, and runs nothing again', async () => {
    using place = openPlace();
    await using service = await openFlakyService(place);
    const { env } = service;
    const file = place.suite({ trials: 2, cases: [{ id: 'one', verify: 'true' }] });
    service.alter = (operation, body) => {
      // The ledger as a backup has it that was made after the start.
      if (operation === 'evals.start')
        cpSync(place.dataFolder, `${place.dataFolder}.kept`, { recursive: true });
      return body;
    };
    expect((await offsite(place, ['run', file], { env })).exitCode).toBe(0);
    const first = (await service.ask('evals.runs.list', { caseId: 'one' })) as RunsPage;
    rmSync(place.dataFolder, { recursive: true });
    cpSync(`${place.dataFolder}.kept`, place.dataFolder, { recursive: true });
    const reports = service.asked.filter((operation) => operation === 'evals.reportTrial').length;
    const { exitCode, stdout, stderr } = await offsite(place, ['resume'], { env });
    expect(exitCode, stderr).toBe(0);
    expect(stderr).toContain('took the results of 2 trials from the service');
    expect(stdout).toContain(': 0 trials finished now, 0 before, 2 from the service');
    // The service shows no times.
    expect(stdout).toMatch(/all +2 +0 +0 +100 % +– +–/);
    expect(await service.ask('evals.runs.list', { caseId: 'one' })).toEqual(first);
    expect(service.asked.filter((operation) => operation === 'evals.reportTrial')).toHaveLength(reports);
    expect((await offsite(place, ['show'])).stdout).toMatch(/^batch .*, 2 from the service$/m);
    const trial = await offsite(place, ['show', 'one/worker#0']);
    expect(trial.stdout).toMatch(/#0 {2}passed {2}from the service$/m);
    const [listed] = JSON.parse((await offsite(place, ['data', 'batches', '--json'])).stdout);
    expect(listed).toMatchObject({ passed: 2, marks: ['2 from the service'] });
    expect(listed).not.toHaveProperty('elapsedMs');
  });

  test('parked results: `outbox retry` without ids takes all of them', async () => {
    using place = openPlace();
    using kept = keptLedger();
    await kept.add('batch_1', { one: [{}, {}] });
    for (const { key } of kept.ledger.outbox.pending())
      kept.ledger.outbox.become(key, 'parked', { answer: 'no', version: 'another version' });
    const { stderr } = await offsite(place, ['data', 'outbox', 'retry'], { dataFolder: kept.folder });
    expect(stderr).toContain('queued 2 results again');
  });

  test('`show` of a batch with a damaged result says so at the top, and does not succeed', async () => {
    using place = openPlace();
    using kept = keptLedger();
    await kept.add('batch_1', { one: [{}, { modelUnmeasured: true }] });
    const { result } = kept.ledger.records.get('SELECT result FROM trials') ?? {};
    truncateSync(kept.ledger.blobs.pathOf(String(result)), 10);
    const { exitCode, stdout } = await offsite(place, ['show'], { dataFolder: kept.folder });
    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/^1 result cannot be read and is not counted: offsite data check/);
  });

  test('runs of a service that counts its pages from 0 are listed, by pages from 1', async () => {
    using place = openPlace();
    await using double = await openSloppyDouble({ pagesFrom: 0 });
    const suite = { id: 's', name: 'S', prompt: 'p' };
    const start = { suite, cases: [{ id: 'one', name: 'One' }], variants: [{ model: 'm' }], trials: 1 };
    for (let n = 0; n < 3; n++) await double.start(start);
    const { stdout, exitCode } = await offsite(place, ['service', 'runs', 'one'], { env: double.env });
    expect(exitCode).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(5);
    expect(stdout).toContain('page 1 of 1');
  });

  test('output that cannot be written is no success, and an empty OFFSITE_URL is no address', async () => {
    using place = openPlace();
    const command = `"$0" "$@" > /dev/full`;
    const args = [main, 'models', 'list', '--json'];
    const full = await execa('sh', ['-c', command, process.execPath, ...args], {
      reject: false,
      // Of their own: commands that run in this process have others meanwhile.
      cwd: place.folder,
      extendEnv: false,
      env: { HOME: place.folder, PATH: '/usr/bin:/bin' },
    });
    expect([full.exitCode, full.stderr]).toEqual([3, expect.stringContaining('could not be written')]);
    const empty = await offsite(place, ['service', 'whoami'], { env: { OFFSITE_URL: '' } });
    expect([empty.exitCode, empty.stderr]).toEqual([
      2,
      expect.stringContaining('OFFSITE_URL is set, but empty'),
    ]);
  });
});
