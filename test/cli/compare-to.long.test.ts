import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { readPlan } from '../../src/agent/batch-run.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { BatchSummary } from '../../src/cli/output/summary.ts';
import { permissions } from '../../src/contract/definition.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { startRequest } from '../../src/suite/plan.ts';
import { testPlatform, trialRecord } from '../service/test-platform.ts';
import { openTestService } from '../service/test-service.ts';
import { place, sharedPlace } from './each-place.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

sharedPlace();

const cases = Array.from({ length: 8 }, (_, n) => ({ id: `case-${n}`, verify: 'test -f done' }));
/** A suite whose agent is good or not. The cases are the same. */
const suite = (run: string) => place.suite({ run, cases });

/** Starts the plan of a batch of the ledger on the service's platform, where each trial passes. */
async function completeOnPlatform(batchId: string): Promise<void> {
  using ledger = new Ledger(place.dataFolder, systemClock);
  const [batch] = ledger.batches.find(batchId);
  const plan = readPlan(ledger.blobs.readJson(batch?.plan ?? ''));
  const service = openTestService(place.dataFolder, testPlatform());
  const key = service.keyFor('Local', ...permissions);
  const request = { ...startRequest(plan), local: false };
  const { runs } = await service.succeed('evals.start', request, key);
  for (const { id } of runs) await service.service.platform.complete(id, 0, trialRecord());
  await service.service.close();
}

describe('offsite run --compare-to', () => {
  let before: string;
  beforeAll(async () => {
    const { stdout } = await offsite(place, ['run', suite('touch done'), '--json']);
    before = JSON.parse(stdout).batchId;
  });

  const runAgain = (run: string, ...more: string[]) =>
    offsite(place, ['run', suite(run), '--compare-to', before.slice(0, 12), '--fail-on-regression', ...more]);

  test('exits 1 if the results are worse by more than noise, and says so', async () => {
    const { exitCode, stdout, stderr } = await runAgain('true');
    expect(stdout).toMatch(/^B is worse by 100 points \(\d+ to 100\), over 8 cases\.$/m);
    expect(stderr).toMatch(/^regression: worker is worse than in batch_[\w-]+/m);
    expect(exitCode).toBe(1);
  });

  test('exits 0 if a difference cannot be told from noise, and has the comparison in its JSON', async () => {
    const { exitCode, stdout, stderr } = await runAgain('touch done', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      passed: 8,
      comparison: { comparisons: [{ difference: { finding: 'noise', cases: 8 }, redefined: [] }] },
    });
    expect(stderr).toMatch(/^no regression of a variant: compared with batch_/m);
    expect(exitCode).toBe(0);
  });

  test('compares with the baseline of the service, and refuses before anything runs if there is none', async () => {
    const withBaseline = () =>
      offsite(place, ['run', suite('true'), '--compare-to', 'baseline', '--fail-on-regression']);
    const refused = await withBaseline();
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
    expect(refused.stderr).toMatch(
      /^error: the embedded service has no baseline for these cases and variants/,
    );

    await completeOnPlatform(before);
    const { exitCode, stdout, stderr } = await withBaseline();
    expect(stdout).toMatch(/^A {2}baseline · worker, 8 runs: 100 %/m);
    expect(stdout).toMatch(/^B is worse by 100 points \(\d+ to 100\), over 8 cases\.$/m);
    expect(stdout).not.toContain('ask and check the same');
    expect(stderr).toMatch(/^regression: worker is worse than in the baseline by more than noise/m);
    expect(exitCode).toBe(1);
  });

  test('refuses a batch that says nothing about this suite, before anything runs', async () => {
    const other = place.suite({ cases: [{ id: 'other', verify: 'true' }] });
    const refused = await offsite(place, ['run', other, '--compare-to', before]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toMatch(/^error: batch_\S+ has no case of this suite with a verdict/);
    const unknown = await offsite(place, ['run', suite('true'), '--compare-to', 'nix']);
    expect(unknown).toMatchObject({ exitCode: 2, stdout: '' });
    expect(unknown.stderr).toMatch(/^error: the data folder \S+ has no batch nix/);
    expect(unknown.stderr).toContain(`The data folder is ${place.dataFolder}.`);
  });

  test('ends before a trial if the gate will have no case to judge, since all of them changed', async () => {
    const other = place.suite({
      run: 'touch done',
      cases: cases.map((one) => ({ ...one, verify: 'test -e done' })),
    });
    const gated = (...gate: string[]) => offsite(place, ['run', other, '--compare-to', before, ...gate]);
    const refused = await gated('--fail-on-case-regression');
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
    expect(refused.stderr).toMatch(/can be judged: its cases changed: case-0 \(verify\), case-1 \(verify\)/);
    expect(refused.stderr).toContain('Run them once without --compare-to');
    const one = place.suite({
      run: 'touch done',
      cases: [{ id: 'case-0', verify: 'test -e done' }, ...cases.slice(1, 3)],
    });
    const judged = await offsite(place, ['run', one, '--compare-to', before, '--fail-on-case-regression']);
    expect(judged.exitCode, judged.stderr).toBe(0);
  });

  test.each([
    [['--fail-on-regression'], '--fail-on-regression needs --compare-to'],
    [['--precision', '0.1'], '--precision needs --trials auto'],
    [['--max-trials', '4'], '--max-trials needs --trials auto'],
    [['--compare-to', 'x', '--dry-run'], 'cannot be used with'],
  ])('refuses %j', async (options, message) => {
    const { exitCode, stderr } = await offsite(place, ['run', suite('true'), ...options]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('offsite run --trials auto', () => {
  const three = cases.slice(0, 3);

  test('runs further batches until the pass rate is precise, and sums up all of them', async () => {
    const file = place.suite({ run: 'touch done', cases: three });
    const { exitCode, stdout, stderr } = await offsite(place, [
      'run',
      file,
      '--trials',
      'auto',
      '--precision',
      '0.3',
      '--json',
      '--concurrency',
      '4',
    ]);
    expect(stderr).toContain('not precise yet, further trials: 2 more of 3 cases on worker');
    const summary: BatchSummary & { rates: unknown } = JSON.parse(stdout);
    expect(summary).toMatchObject({
      passed: 12,
      failed: 0,
      passRate: 1,
      rates: [{ variant: 'worker', rate: 1, stopped: 'precise', halfWidth: expect.closeTo(0.181, 3) }],
    });
    expect(summary.batchIds).toHaveLength(2);
    expect(summary.runs.map((run) => [run.case, run.passed])).toEqual([
      ['case-0', 4],
      ['case-1', 4],
      ['case-2', 4],
    ]);
    expect(summary.runs[0]?.trials.map(({ ordinal, recorded }) => [ordinal, recorded?.ordinal])).toEqual([
      [0, 0],
      [1, 1],
      [2, 0],
      [3, 1],
    ]);
    expect(new Set(summary.runs[0]?.trials.map(({ recorded }) => recorded?.batchId))).toEqual(
      new Set(summary.batchIds),
    );
    expect(exitCode).toBe(0);
  });

  test('stops at --max-trials and says so; a case that is always void gets no further trials', async () => {
    const broken = { id: 'broken', prepare: 'exit 4', verify: 'true' };
    const file = place.suite({ run: 'touch done', cases: [...three.slice(0, 2), broken] });
    const { exitCode, stdout, stderr } = await offsite(place, [
      'run',
      file,
      '--trials',
      'auto',
      '--precision',
      '0.01',
      '--max-trials',
      '3',
      '-c',
      '4',
    ]);
    expect(stderr).toContain('further trials: 1 more of 2 cases on worker');
    const rows = stdout.split('\n').map((line) => line.split(/\s{2,}/).slice(0, 4));
    expect(rows).toContainEqual(['case-0 · worker', '3', '0', '0']);
    expect(rows).toContainEqual(['broken · worker', '0', '0', '2']);
    expect(rows).toContainEqual(['all', '6', '0', '2']);
    expect(stdout).toMatch(
      /^worker: pass rate 100 % ± [\d.]+ points on these cases; stopped before that by/m,
    );
    expect(stdout).toMatch(/^batches batch_\S+\+batch_\S+$/m);
    expect(exitCode).toBe(3);
  });
});

describe('a suite of few cases', () => {
  test('is told that it cannot show a regression, and can fail by its cases', async () => {
    using own = openPlace();
    const small = (run: string) => own.suite({ run, cases: cases.slice(0, 2) });
    const none = await offsite(own, ['run', small('touch done'), '--compare-to', 'last']);
    expect(none).toMatchObject({ exitCode: 2, stdout: '' });
    expect(none.stderr).toContain('has no finished batch of the suite small to compare with');
    expect(none.stderr).toContain(`The data folder is ${own.dataFolder}.`);

    await offsite(own, ['run', small('touch done')]);
    const gates = ['--fail-on-regression', '--compare-to', 'last'];
    const blind = await offsite(own, ['run', small('true'), ...gates]);
    const [before = ''] = blind.stderr.split('service: ');
    expect(before, 'said before anything runs').toMatch(
      /^--fail-on-regression cannot fail for worker: compared with batch_\S+, .*, or add --fail-on-case-regression$/m,
    );
    expect(blind.stderr).toMatch(
      /^cannot show a regression of worker with 2 cases and 1 trial of each: compared with batch_\S+, not even a/m,
    );
    expect(blind.stderr).toMatch(/ at least 7 cases are needed, or use --fail-on-case-regression as well$/m);
    expect(blind.stderr).not.toContain('no regression');
    expect(blind.exitCode).toBe(0);

    await offsite(own, ['run', small('touch done')]);
    const byCase = await offsite(own, ['run', small('true'), ...gates, '--fail-on-case-regression']);
    expect(byCase.stderr).toMatch(
      /^case regression, though no pass rate is worse by more than noise: always passed in batch_\S+, and always fails now: case-0 · worker \(1 of 1 failed\), case-1/m,
    );
    expect(byCase.exitCode).toBe(1);

    // All cases of the last batch failed, so that none can be lost.
    const after = await offsite(own, [
      'run',
      small('true'),
      '--compare-to',
      'last',
      '--fail-on-case-regression',
    ]);
    expect(after.stderr).toMatch(/^no case regression: no case that always passed in batch_/m);
    expect(after.exitCode).toBe(0);
  });

  test('is told which batch `last` is, of which variant, and why a newer one is not taken', async () => {
    using own = openPlace();
    const prepared = (prepare: string) =>
      own.suite({ run: 'touch done', cases: [{ id: 'a', prepare, verify: 'test -f done' }] });
    const before = JSON.parse((await offsite(own, ['run', prepared('true'), '--json'])).stdout);
    const voided = JSON.parse((await offsite(own, ['run', prepared('exit 4'), '--json'])).stdout);
    const real = own.suite({
      variants: [{ name: 'real', model: 'none', harness: 'command', profile: 'worker' }],
      cases: [{ id: 'a', prepare: 'true', verify: 'test -f done' }],
    });
    const gate = ['--compare-to', 'last', '--fail-on-regression'];
    const { stderr } = await offsite(own, ['run', real, '--json', ...gate]);
    expect(stderr).toContain(`not compared with ${voided.batchId}, which is newer: it has no verdict\n`);
    expect(stderr).toContain(`compared with ${before.batchId}: its variant worker with real here\n`);
    // It is no trend of one variant.
    expect(stderr).toContain(`\npass rates: real 0 %, worker in ${before.batchId} 100 %\n`);
    const resumed = await offsite(own, ['resume', 'evals/suite.yaml']);
    expect(resumed.stderr).toContain('Name a batch, not a file of a suite.');
  });

  test('of several trials is told before it runs that only a fall of nearly all cases counts', async () => {
    using own = openPlace();
    const four = own.suite({ run: 'touch done', cases: cases.slice(0, 4) });
    await offsite(own, ['run', four, '--trials', '4', '-c', '8']);
    const gate = ['--compare-to', 'last', '--fail-on-regression'];
    const step = { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: own.write('step.md', '') };
    const { stderr } = await offsite(own, ['run', four, '--trials', '4', '-c', '8', '--json', ...gate], {
      env: step,
    });
    const summary = readFileSync(step.GITHUB_STEP_SUMMARY, 'utf8');
    for (const log of [
      summary.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code))),
      stderr.split('service: ')[1],
    ]) {
      expect(log).toContain('fails for worker only if about 4 of 4 cases fall to 0 %');
      expect(log).toMatch(/pass rates: worker 100 %, worker in batch_\S+ 100 %/);
    }
    expect(stderr.split('service: ')[0]).toMatch(
      /^--fail-on-regression fails for worker only if about 4 of 4 cases fall to 0 %: compared with batch_/m,
    );
  });
});
