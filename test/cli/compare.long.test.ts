import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { ComparedBatches } from '../../src/comparison/comparison.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { Verdict } from '../../src/ledger/trials.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { noExtras } from '../../src/suite/plan.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

/** `+` passed, `-` failed, `o` void, `.` no result yet. */
type Marks = string;

interface Cell {
  case: string;
  variant?: string;
  trials: Marks;
  /** Seconds of each trial. */
  seconds?: number;
  /** Of each trial; without it the cost is not known. */
  costUsd?: number;
}

let place: Place;
beforeAll(async () => {
  place = openPlace();
  using ledger = new Ledger(place.dataFolder, systemClock);
  const cases = Array.from({ length: 40 }, (_, n) => `case-${String(n).padStart(2, '0')}`);
  await add(
    ledger,
    'batch_before',
    cases.map((name) => ({ case: name, trials: '+++', seconds: 10, costUsd: 0.1 })),
  );
  await add(
    ledger,
    'batch_again',
    cases.map((name, n) => ({ case: name, trials: n < 3 ? '++-' : '+++', seconds: 10 })),
  );
  await add(
    ledger,
    'batch_worse',
    cases.map((name, n) => ({ case: name, trials: n < 12 ? '--+' : '+++', seconds: 30, costUsd: 0.2 })),
  );
  await add(ledger, 'batch_foreign', [{ case: 'case-00', trials: '+' }], { version: 99, verify: 'true' });
  await add(
    ledger,
    'batch_odd',
    [
      { case: 'case-00', trials: '+o-.' },
      { case: 'case-01', trials: 'oo' },
      { case: 'new\u001b[31m', trials: '+' },
    ],
    { verify: 'something else' },
  );
  await add(ledger, 'batch_partly', [
    { case: 'case-00', trials: '+' },
    { case: 'not-before', trials: '--' },
  ]);
  await add(
    ledger,
    'batch_two',
    cases.flatMap((name, n) => [
      { case: name, variant: 'weak', trials: n < 25 ? '-' : '+' },
      { case: name, variant: 'strong', trials: '+' },
    ]),
  );
  await add(
    ledger,
    'batch_three',
    cases.flatMap((name) => [
      { case: name, variant: 'weak', trials: '-' },
      { case: name, variant: 'strong', trials: '+' },
      { case: name, variant: 'new', trials: '+' },
    ]),
  );
});
afterAll(() => place?.[Symbol.dispose]());

/** Records a finished batch. `definition` is what all its cases check. */
async function add(
  ledger: Ledger,
  id: string,
  cells: Cell[],
  { version = 1, ...definition }: { version?: number; verify: string } = { verify: 'true' },
) {
  const cases = [...new Set(cells.map((cell) => cell.case))];
  const planned = cases.map((id) => ({ request: { id, ...definition }, local: noExtras }));
  const plan = await ledger.blobs.putJson({
    version,
    prompt: 'Do it.',
    plan: { cases: planned, variants: [] },
  });
  const { key } = ledger.batches.add({
    service: 'embedded',
    id,
    suite: 'Suite',
    file: undefined,
    plan,
    runs: cells.map((cell, taskIndex) => ({
      id: `run_${taskIndex}`,
      taskIndex,
      caseId: cell.case,
      caseName: cell.case,
      variant: cell.variant ?? 'worker',
      details: {},
    })),
  });
  const runs = ledger.batches.runs(key);
  ledger.queue.add(
    runs.map((run, index) => ({
      key: run.key,
      setup: undefined,
      ordinals: [...(cells[index]?.trials ?? '')].map((_, ordinal) => ordinal),
    })),
  );
  const cellOf = new Map(runs.map((run, index) => [run.key, cells[index]]));
  const verdicts: Record<string, Verdict> = { '+': 'passed', '-': 'failed', o: 'void' };
  for (const trial of ledger.queue.ofBatch(key)) {
    const cell = cellOf.get(trial.run);
    const verdict = verdicts[cell?.trials[trial.ordinal] ?? ''];
    if (!cell || !verdict) continue;
    await ledger.trials.finish(ledger.trials.beginAttempt(trial.key), {
      verdict,
      result: resultOf(cell, verdict, trial.ordinal),
      fingerprint: version === 1 ? { prompt: 'a hash', harness: 'bash 1', ...definition } : undefined,
      report: { caseName: cell.case, ordinal: trial.ordinal, taskIndex: 0, events: [], outcome: {} },
    });
  }
}

function resultOf({ seconds = 1, costUsd }: Cell, verdict: Verdict, ordinal: number): TrialRecord {
  const usage = costUsd === undefined ? {} : { totalTokens: costUsd * 1e6, costUsd };
  const models = {
    exchanges: [],
    connections: [],
    modelMs: 0,
    agent: { acted: true },
    usage: [{ role: 'agent' as const, model: 'm', requests: 1, usage }],
  };
  const finishedAt = 1_000 * seconds + ordinal;
  return {
    version: recordVersion,
    verdict,
    startedAt: 0,
    finishedAt,
    phases: [],
    models,
    modelUnmeasured: false,
  };
}

const compare = (...args: string[]) => offsite(place, ['compare', ...args]);
async function compared(...args: string[]): Promise<ComparedBatches> {
  const { stdout, stderr } = await compare(...args, '--json');
  expect(stderr).toMatch(args.length === 1 ? /^batch batch_three of \S+, the last one\n$/ : /^$/);
  return JSON.parse(stdout);
}

describe('offsite compare', () => {
  test('takes the last two batches of a suite if none is named', async () => {
    const { stdout, stderr } = await compare();
    expect(stderr).toMatch(/^batch batch_three of \S+, the last one\n$/);
    expect(stdout).toBe((await compare('batch_two', 'batch_three')).stdout);
  });

  test('says in one sentence that B is worse, by how much, and which cases got worse', async () => {
    const short = await compare('bef', 'wor');
    expect(short.stdout).toMatch(
      /^A {2}batch_before · worker: 100 %, 120 of 120 trials passed\nB .*80 %, 96 of 120.*\nB is worse by 20 points .*\.\n$/,
    );
    const { stdout, stderr, exitCode } = await compare('bef', 'wor', '--details');
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    expect(stdout).toMatch(/^B is worse by 20 points \([\d.]+ to [\d.]+\), over 40 cases\.$/m);
    expect(stdout).toMatch(/^case-00 +3 of 3 +1 of 3 +worse$/m);
    expect(stdout).toMatch(/12 cases got worse and 0 better; McNemar's test: p < 0\.001/);
    expect(stdout).toContain('A: 0 of 40 cases flip by themselves');
    expect(stdout).toContain('B: 12 of 40 cases flip by themselves');
    expect(stdout).toMatch(/^2 +100 % .* {2}90 % \(.* {2}100 % .* {2}70 % \(/m);
    expect(stdout).toMatch(/^time, median +10\.0 s \(.*\) +30\.0 s \(/m);
    expect(stdout).toMatch(/^cost +\+\$0\.1000 \(\+\$0\.1000 to \+\$0\.1000\)/m);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(110);
  });

  test('says that a difference cannot be told from noise, which is no proof of equality', async () => {
    const { stdout } = await compare('bef', 'aga', '--details');
    expect(stdout).not.toContain('? to ?');
    expect(stdout).toMatch(
      /^No difference can be told from noise: B - A is -2\.5 points \(-[\d.]+ to \+?[\d.]+\)/m,
    );
    expect(stdout).toContain('does not show that they are equal');
  });

  test('exits 1 with --fail-on-regression only if B is worse by more than noise', async () => {
    expect((await compare('before', 'worse', '--fail-on-regression')).exitCode).toBe(1);
    expect((await compare('worse', 'before', '--fail-on-regression')).exitCode).toBe(0);
    expect((await compare('before', 'again', '--fail-on-regression')).exitCode).toBe(0);
  });

  test('has everything in one JSON document', async () => {
    const { comparisons, ...rest } = await compared('before', 'worse');
    expect(rest).toEqual({ variantsOnlyA: [], variantsOnlyB: [] });
    expect(comparisons).toHaveLength(1);
    const [comparison] = comparisons;
    expect(comparison).toMatchObject({
      a: { batches: ['batch_before'], variant: 'worker', passRate: { rate: 1, passed: 120, cases: 40 } },
      b: { noise: { repeated: 40 }, void: 0, unfinished: 0, unreadable: 0 },
      difference: { confidence: 0.95, cases: 40, finding: 'worse' },
      mcnemar: { better: 0, worse: 12, tied: [] },
      onlyA: [],
      onlyB: [],
      redefined: [],
      measures: { durationMs: { cases: 40, meanDifference: 20_000 }, costUsd: { cases: 40 } },
    });
    expect(comparison?.difference.value).toBeCloseTo(-0.2, 10);
    expect(comparison?.changes).toHaveLength(12);
    expect(comparison?.changes[0]).toEqual({
      case: 'case-00',
      a: { passed: 3, scored: 3 },
      b: { passed: 1, scored: 3 },
    });
    expect(comparison?.b.passAtK.map(({ k }) => k)).toEqual([1, 2, 3]);
    expect(comparison?.b.quantiles.costUsd.map(({ level }) => level)).toEqual([0.5, 0.9, 0.95]);
  });

  test('names what it leaves out: void and unfinished trials, cases of one side, changed cases', async () => {
    const { comparisons } = await compared('before', 'odd');
    expect(comparisons[0]).toMatchObject({
      b: { void: 3, unfinished: 1, passRate: { cases: 2, passed: 2, failed: 1 } },
      difference: { cases: 0, finding: 'nothing-in-common' },
      changes: [],
      measures: { durationMs: { cases: 0 } },
      redefined: ['case-00'],
      onlyB: ['new\u001b[31m'],
    });
    expect(comparisons[0]?.onlyA).toHaveLength(39);
    const { stdout } = await compare('before', 'odd', '--details');
    expect(stdout).toContain('With a verdict only in A, not compared: case-01, case-02');
    expect(stdout).toContain('With a verdict only in B, not compared: new\\u{1b}[31m');
    expect(stdout).toMatch(
      /^Not compared, since not all trials ask and check the same: 1 case: case-00 \(verify\)$/m,
    );
    expect(stdout).toContain('B: 3 void trials left out.');
    expect(stdout).toContain('B: 1 trial without a result yet.');
  });

  test('shows the rates and counts of the cases that are compared, beside their difference', async () => {
    const { comparisons } = await compared('before', 'partly');
    expect(comparisons[0]).toMatchObject({
      a: { passRate: { rate: 1, cases: 1, passed: 3, failed: 0 } },
      b: { passRate: { rate: 1, cases: 1, passed: 1, failed: 0 } },
      difference: { value: 0, cases: 1 },
    });
    const { stdout } = await compare('before', 'partly');
    expect(stdout).toMatch(/^B {2}batch_partly · worker: 100 %, 1 of 1 trial passed$/m);
    expect(stdout).toMatch(/^With 1 case and 3 trials of A and 1 of B,/m);
  });

  test('the gate says which cases it did not compare, since they are new or gone', async () => {
    const { stderr, exitCode } = await compare('before', 'partly', '--fail-on-case-regression');
    expect(stderr).toMatch(
      /no case regression: .*; 40 cases not compared, with a verdict on one side only: case-01, .* and 35 more/,
    );
    expect(exitCode).toBe(0);
  });

  test('the results of a batch whose plan an Offsite of another version stored are compared', async () => {
    const { comparisons } = await compared('foreign', 'odd');
    expect(comparisons[0]?.difference.cases).toBe(1);
    expect(comparisons[0]).not.toHaveProperty('redefined');
  });

  test('a number that is not known on one side is not compared', async () => {
    const { comparisons } = await compared('before', 'again');
    expect(comparisons[0]?.measures.costUsd).toEqual({ cases: 0 });
    expect(comparisons[0]?.b.quantiles.costUsd).toEqual([]);
    expect(comparisons[0]?.measures.durationMs.meanDifference).toBe(0);
  });

  test('says of each variant how many trials it has left, and takes the last batch that has ended', async () => {
    using own = openPlace();
    {
      using ledger = new Ledger(own.dataFolder, systemClock);
      await add(ledger, 'batch_ended', [
        { case: 'a', variant: 'weak', trials: '-' },
        { case: 'a', variant: 'strong', trials: '+' },
      ]);
      await add(ledger, 'batch_stopped', [
        { case: 'a', variant: 'weak', trials: '+???' },
        { case: 'a', variant: 'strong', trials: '+++?' },
      ]);
    }
    const stopped = await offsite(own, ['compare', 'stopped:weak', 'stopped:strong']);
    expect(stopped.stdout).toMatch(
      /^A {2}batch_stopped · weak \(3 trials left\).*\nB .* strong \(1 trial left\)/,
    );
    const { stdout, stderr } = await offsite(own, ['compare', ':strong', ':weak']);
    expect(stdout).toMatch(/^A {2}batch_ended · strong: .*\nB {2}batch_ended · weak: /);
    expect(stderr).toContain('batch_stopped of Suite started later and has not ended: it is not compared');
  });

  test('compares two variants of one batch, and without a second reference the last batch', async () => {
    const { comparisons } = await compared('two:strong', 'two:weak');
    expect(comparisons[0]).toMatchObject({
      a: { variant: 'strong', batches: ['batch_two'] },
      b: { variant: 'weak' },
      difference: { value: -0.625, finding: 'worse' },
      redefined: [],
    });
    const last = await compared('two:strong');
    expect(last.comparisons[0]?.b.batches).toEqual(['batch_three']);
    expect(last.variantsOnlyB).toEqual(['weak', 'new']);
  });

  test('compares each variant that both batches have, with intervals that hold together', async () => {
    const { comparisons, variantsOnlyB } = await compared('two', 'three');
    expect(comparisons.map(({ b, difference }) => [b.variant, difference.confidence])).toEqual([
      ['weak', 0.975],
      ['strong', 0.975],
    ]);
    expect(variantsOnlyB).toEqual(['new']);
    const { stdout } = await compare('two', 'three', '--details');
    expect(stdout).toContain('2 variants are compared. Each difference has a 97.5 % interval');
    expect(stdout).toContain('Variants only in B, not compared: new');
  });

  test('`last` is the last batch, and a batch is not compared with itself', async () => {
    const { comparisons } = await compared('last:weak', 'two:weak');
    expect(comparisons[0]?.a.batches).toEqual(['batch_three']);
    const variants = await compared(':weak', ':strong');
    expect(variants.comparisons[0]).toMatchObject({
      a: { batches: ['batch_three'], variant: 'weak' },
      b: { batches: ['batch_three'], variant: 'strong' },
    });
    const same = await compare('last');
    expect(same.stderr).toContain('are the same trials');
    expect(same.exitCode).toBe(2);
    const wrong = await compare('last:waek', 'two:weak');
    expect(wrong.stderr).toContain('has no variant waek; did you mean "weak"?');
  });

  test('takes several batches of one suite as one side', async () => {
    const { comparisons } = await compared('worse', 'before+again');
    expect(comparisons[0]?.b).toMatchObject({
      batches: ['batch_before', 'batch_again'],
      passRate: { passed: 237, failed: 3 },
    });
  });

  test.each([
    [['nix'], /the data folder \S+ has no batch nix/],
    [['weak', 'strong'], /no batch weak\n.*variant weak of the last batch, write :weak/],
    [['wea', 'strong'], /no batch wea\n.*For the variant weak of the last batch, write :weak/],
    [['weak:strong'], /no batch weak\n.*For the variant weak of the last batch, write :weak/],
    [['batch_', 'batch_b'], /8 batches fit batch_:/],
    [['before:nix', 'worse'], /no variant nix; available: worker\n/],
    [['before:worker+two:weak', 'two'], /Name the variant once, after the batches: before\+two:weak\./],
    [['before', 'before'], /are the same trials/],
    [['two', 'two'], /two variants of one, such as BATCH:weak BATCH:strong/],
    [['before', 'two'], /have no variant of the same name\n.*Name one of each/],
    [[':new', 'two'], /have no variant of the same name\n.*Two variants of one batch: :new :weak\./],
    [[':new'], /are the same trials.*\n.*Two variants of one batch: :new :weak\./],
  ])('refuses %j', async (args, message) => {
    const { exitCode, stderr, stdout } = await compare(...args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });
});
