import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { finishTrial } from '../../src/agent/finish-trial.ts';
import type { AttemptEvent } from '../../src/agent/worker/worker-parts.ts';
import { systemClock } from '../../src/base/clock.ts';
import { openBudget } from '../../src/gateway/budget.ts';
import type { BudgetAccount } from '../../src/gateway/gateway.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { scriptedUpstream } from '../../src/gateway/scripted/scripted-upstream.ts';
import type { TrialKey } from '../../src/ledger/batches.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { daemonLock } from '../../src/ledger/queue.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { engine, sharedEngine } from '../engine/shared-engine.ts';
import { specOf } from '../trial/trial-bench.ts';
import { openAttemptBench } from './attempt-bench.ts';

eachFolder();
sharedEngine();

/**
 * What becomes of trials, as a batch has it: each is asked to be finished at once, and `concurrency` run at a
 * time.
 */
interface Bench extends AsyncDisposable {
  ledger: Ledger;
  finish(trials: readonly { key: TrialKey; run: string }[]): Promise<TrialRecord[]>;
  observed: AttemptEvent[];
  begun: () => number;
}

function openBench(concurrency: number, batch?: BudgetAccount): Bench {
  const stack = new AsyncDisposableStack();
  const file = join(folder, 'model.yaml');
  writeFileSync(file, 'turns: [{ text: hello, repeat: true }]\n');
  const modelConfig = ModelConfig.parse({ scripted: file });
  const ledger = stack.use(new Ledger(folder, systemClock));
  const gateway = stack.use(
    openGateway({
      models: { model: modelConfig },
      env: {},
      clock: systemClock,
      scripted: (name) => scriptedUpstream(name, systemClock),
    }),
  );
  const observed: AttemptEvent[] = [];
  let begun = 0;
  const attempts = stack.use(
    openAttemptBench(engine, { ledger, gateway, clock: systemClock }, { concurrency }),
  );
  const parts = { ...attempts.parts, budgets: { trial: {}, batch } };
  const { signal } = new AbortController();
  const spec = (run: string): TrialSpec =>
    specOf('', {
      model: 'model',
      modelConfig,
      harness: 'fixture-cli',
      verify: 'true',
      profile: profileOf({ name: 'fast', run }),
    });
  return {
    ledger,
    observed,
    begun: () => begun,
    finish: (trials) =>
      Promise.all(
        trials.map(async ({ key, run }) => {
          const observe = (event: AttemptEvent) => void observed.push(event);
          const count = () => {
            begun += 1;
          };
          const wanted = spec(run);
          using seat = await attempts.engines.seat(wanted, signal);
          return await finishTrial(
            wanted,
            key,
            { ...parts, seat },
            { signal, admitted: signal },
            observe,
            count,
          );
        }),
      ),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A batch of a run for each variant; returns the keys of so many trials of each. */
function queue(ledger: Ledger, variants: string[], trials: number, id = 'batch'): TrialKey[][] {
  const { key } = ledger.batches.add({
    service: 's',
    id,
    suite: 'S',
    file: undefined,
    runs: variants.map((variant, variantIndex) => ({
      id: `${id}-${variant}`,
      taskIndex: 0,
      caseId: 'a',
      caseName: 'A',
      variant,
      variantIndex,
    })),
  });
  const ordinals = Array.from({ length: trials }, (_, ordinal) => ordinal);
  ledger.queue.add(ledger.batches.runs(key).map((run) => ({ key: run.key, setup: undefined, ordinals })));
  const all = ledger.queue.ofBatch(key);
  return ledger.batches
    .runs(key)
    .map((run) => all.filter((trial) => trial.run === run.key).map((trial) => trial.key));
}

const broken = 'echo no such option >&2; exit 2';
const working = `eval "$ASK"; echo '{"type":"end"}'`;
const of = (keys: readonly TrialKey[] = [], run: string) => keys.map((key) => ({ key, run }));
const kindsOf = (results: readonly TrialRecord[]) =>
  results.map(({ verdict, cause, notRun }) => [verdict, cause?.kind, notRun === true]);

/** Gives trials the results of three harnesses that did not work, as another process left them. */
async function breakThree(ledger: Ledger, keys: readonly TrialKey[] = []): Promise<void> {
  const cause = { kind: 'harness', phase: 'harness', message: 'no such option' } as const;
  for (const [ordinal, key] of keys.slice(0, 3).entries()) {
    const report = { caseName: 'A', ordinal, taskIndex: 0, events: [], outcome: {} };
    const finished = { verdict: 'void', cause, result: { verdict: 'void', cause }, report } as const;
    await ledger.trials.finish(ledger.trials.beginAttempt(key), finished);
  }
}

const brokenOne = ['void', 'harness', false];
const stoppedOne = ['void', 'harness', true];

test('a trial that begins when its batch has no budget left does not run, and is not to blame', async () => {
  const batch = openBudget({ usd: 0.02 }, systemClock.now());
  batch.spent.usd = 0.03;
  await using bench = openBench(1, batch);
  const [keys] = queue(bench.ledger, ['fast'], 1);
  const [result] = await bench.finish(of(keys, working));
  expect(result).toMatchObject({
    verdict: 'void',
    notRun: true,
    cause: {
      kind: 'infrastructure',
      message: "not run: the batch's budget of 0.02 USD (budgets.batch.usd) is spent: 0.0300 were used",
    },
  });
  expect(bench.begun()).toBe(0);
});

test('a variant whose harness does not work is warned of once, and stopped after three trials', async () => {
  await using bench = openBench(1);
  const [first, second] = queue(bench.ledger, ['fast', 'slow'], 4);
  const results = await bench.finish([...of(first, broken), ...of(second?.slice(0, 2), working)]);
  expect(kindsOf(results)).toEqual([
    brokenOne,
    brokenOne,
    brokenOne,
    stoppedOne,
    ...Array(2).fill(['passed', undefined, false]),
  ]);
  const warnings = bench.observed.filter((event) => event.kind === 'broken-harness');
  expect(warnings.map(({ position }) => position)).toEqual([1, 3]);
  expect(warnings[0]?.message).toMatch(
    /warning: fixture-cli ended with an error[\s\S]*no such option[\s\S]*Check install/,
  );
  expect(warnings[1]?.message).toContain('are not run');
  // An attempt each, since no other would fare better, and every trial has its report.
  expect(bench.observed.filter(({ kind }) => kind === 'retried')).toEqual([]);
  expect(bench.begun()).toBe(5);
  const [, , , stopped = 0] = first ?? [];
  const { outcome, usage } = bench.ledger.outbox.body(stopped);
  expect(outcome.passed).toBeUndefined();
  expect(outcome.voidFields).toEqual(expect.arrayContaining(['passed', 'exitCode', 'commandCount']));
  expect(usage?.totalTokens).toBe(0);
  expect(bench.ledger.outbox.pending()).toHaveLength(6);
});

test('trials that run at the same time are warned of once', async () => {
  await using bench = openBench(3);
  const [keys] = queue(bench.ledger, ['fast'], 6);
  const results = await bench.finish(of(keys, broken));
  expect(results.every(({ cause }) => cause?.kind === 'harness')).toBe(true);
  expect(results.filter(({ notRun }) => notRun).length).toBeGreaterThanOrEqual(1);
  const warnings = bench.observed.filter((event) => event.kind === 'broken-harness');
  expect(warnings.map(({ position }) => position).toSorted()).toEqual([1, 3]);
});

test('a variant stays stopped when its batch is resumed, and other batches are not', async () => {
  await using bench = openBench(1);
  const [keys] = queue(bench.ledger, ['fast'], 5);
  await breakThree(bench.ledger, keys);
  expect(kindsOf(await bench.finish(of(keys?.slice(3), working)))).toEqual([stoppedOne, stoppedOne]);
  const [others] = queue(bench.ledger, ['fast'], 1, 'another');
  expect(kindsOf(await bench.finish(of(others, working)))).toEqual([['passed', undefined, false]]);
});

test('a run that is queued anew after its variant was stopped is run', async () => {
  await using bench = openBench(1);
  const found = { service: 's', batchId: 'batch', suite: 'S', caseId: 'a', caseName: 'A', variant: 'fast' };
  const claim = (id: string, trials: number) => {
    const ordinals = Array.from({ length: trials }, (_, ordinal) => ordinal);
    bench.ledger.foundRuns.adopt({ ...found, id, details: {}, setup: undefined, ordinals });
    return bench.ledger.queue.openTrials({ service: 's', lock: daemonLock }, id).map(({ key }) => key);
  };
  const first = claim('first', 4);
  await breakThree(bench.ledger, first);
  expect(kindsOf(await bench.finish(of(first.slice(3), working)))).toEqual([stoppedOne]);
  expect(kindsOf(await bench.finish(of(claim('again', 1), working)))).toEqual([['passed', undefined, false]]);
});
