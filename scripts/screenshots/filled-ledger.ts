import type { BatchKey, TrialKey } from '../../src/ledger/batches.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { recordOf, type TrialResult } from '../../src/record/trial-record.ts';
import { randomIndex } from '../../src/stats/random.ts';
import { failedTrial, shortTrial } from './failed-trial.ts';

/** A clock that stands still until it is set. */
export interface SetClock {
  at: number;
}

const suite = 'npm-fixes';
/** Names of cases, with the chance in percent that a trial of `large` and one of `small` passes. */
const cases: [string, number, number][] = [
  ['negative-durations', 90, 40],
  ['nested-keys', 75, 25],
  ['ini-prototype', 100, 75],
  ['monthly-report', 100, 100],
  ['leaked-file', 60, 20],
  ['glob-negation', 85, 50],
  ['stream-backpressure', 70, 30],
  ['retry-after', 95, 80],
  ['csv-quotes', 100, 85],
  ['timezone-offset', 55, 10],
  ['circular-json', 90, 70],
  ['semver-range', 80, 60],
];
const pairs = cases.flatMap(([caseName, large, small]) => [
  { caseName, variant: 'large', chance: large },
  { caseName, variant: 'small', chance: small },
]);
const repeats = 4;

/**
 * Fills a ledger with a batch, with a fixed seed, so that the pictures are the same each time. The returned
 * trial is the one whose page is shown.
 */
export async function fillLedger(
  ledger: Ledger,
  clock: SetClock,
): Promise<{ batch: BatchKey; trial: TrialKey }> {
  const random = randomIndex(7);
  const batch = addBatch(ledger, 'kP2yA7rNsl');
  const runs = ledger.batches.runs(batch).map(({ key }) => key);
  let shown: TrialKey = 0;
  for (const { key, run, ordinal } of ledger.queue.ofBatch(batch)) {
    const { caseName, variant, chance = 0 } = pairs[runs.indexOf(run)] ?? {};
    const isShown = caseName === 'negative-durations' && variant === 'small' && ordinal === 1;
    if (isShown) shown = key;
    const took = 50_000 + random(70_000);
    const tokens = (variant === 'large' ? 60_000 : 25_000) + random(9_000);
    const passed = random(100) < chance;
    const result = isShown ? await failedTrial(ledger, clock.at) : shortTrial(clock.at, took, passed, tokens);
    await finish(ledger, clock, key, result);
  }
  return { batch, trial: shown };
}

function addBatch(ledger: Ledger, id: string): BatchKey {
  const { key } = ledger.batches.add({
    ...{ service: 'embedded', id: `batch_${id}`, suite, file: undefined },
    runs: pairs.map(({ caseName, variant }, taskIndex) => ({
      ...{ id: `run_${id}_${taskIndex}`, taskIndex, caseId: caseName, caseName, variant, details: {} },
    })),
  });
  const ordinals = [...Array(repeats).keys()];
  ledger.queue.add(ledger.batches.runs(key).map((run) => ({ run: run.key, setup: undefined, ordinals })));
  return key;
}

/** Eight trials run at a time, so that the next one begins before this one ends. */
async function finish(ledger: Ledger, clock: SetClock, trial: TrialKey, result: TrialResult): Promise<void> {
  const began = clock.at;
  const { verdict, startedAt, finishedAt } = result;
  const attempt = ledger.trials.beginAttempt(trial);
  clock.at += finishedAt - startedAt;
  const outcome = { passed: verdict === 'passed' };
  const report = { caseName: 'any', ordinal: 0, taskIndex: 0, events: [], outcome };
  await ledger.trials.finish(attempt, { verdict, result: recordOf(result), report });
  clock.at = began + (finishedAt - startedAt) / 8;
}
