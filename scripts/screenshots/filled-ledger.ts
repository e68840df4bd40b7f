import type { BatchKey, NewBatch, TrialKey } from '../../src/ledger/batches.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Cause } from '../../src/record/cause.ts';
import { listingOf } from '../../src/record/listing.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { randomIndex } from '../../src/stats/repeats.ts';
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

/** A suite with long names, many variants, trials that are void or unfinished, and a set of two batches. */
const checkout = {
  suite: 'checkout-service-regressions-of-the-last-quarter',
  cases: [
    'refund-of-a-partly-shipped-order-is-rounded-twice',
    'voucher',
    'concurrent-reservations-of-the-last-item-in-stock',
    'the-invoice-names-the-wrong-tax-rate-after-a-change-of-country',
  ],
  variants: ['claude-code/sonnet', 'codex/large', 'codex/small', 'opencode/local-model-of-the-house'],
};
const overloaded: Cause = {
  kind: 'model',
  phase: 'harness',
  message: 'the provider answered 529 to each of 6 tries: Overloaded. Please try again later.',
};

/** What the pictures show. */
export interface Filled {
  /** The newest batch of the suite, and the one before. */
  batch: BatchKey;
  earlier: BatchKey;
  /** A batch with void and unfinished trials, many variants and long names. */
  hard: BatchKey;
  /** A batch that used no model. */
  modelless: BatchKey;
  /** Its artifacts are a text, a picture and neither. */
  failed: TrialKey;
  /** It was graded again. */
  voided: TrialKey;
  queued: TrialKey;
}

/** Fills a ledger with batches, with a fixed seed, so that the pictures are the same each time. */
export async function fillLedger(ledger: Ledger, clock: SetClock): Promise<Filled> {
  const random = randomIndex(7);
  const now = clock.at;
  clock.at = now - 5 * day;
  const modelless = addBatch(
    ledger,
    { id: 'Qs6wT1oPzx', suite: 'quickstart', repeats: 2 },
    pairsOf(['negative-durations', 'nested-keys', 'monthly-report'], ['solver', 'novice']),
  );
  for (const { trial, variant } of modelless.trials)
    await finish(ledger, clock, trial, shortTrial(clock.at, 3_000 + random(900), variant === 'solver', 0));

  let earlier: BatchKey = 0;
  for (const [index, id] of ['w3Hc8eJmVq', 'b0Nf5uXkRd', 'y7Gz2aLsTi'].entries()) {
    clock.at = now - (4 - index) * day;
    const answers = index === 1 ? 'replayed' : 'live';
    const { key, trials } = addBatch(ledger, { id, suite, repeats, answers }, pairs);
    earlier = key;
    for (const { trial, variant, chance } of trials) {
      const tokens = (variant === 'large' ? 58_000 : 24_000) + random(9_000);
      const passed = random(100) < chance - 30 + 10 * index;
      await finish(ledger, clock, trial, shortTrial(clock.at, 50_000 + random(70_000), passed, tokens));
    }
  }

  clock.at = now - 3 * 3_600_000;
  const { hard, voided, queued } = await fillHard(ledger, clock, random);

  clock.at = now;
  const { key: batch, trials } = addBatch(ledger, { id: 'kP2yA7rNsl', suite, repeats }, pairs);
  let failed: TrialKey = 0;
  for (const { trial, caseName, variant, chance, ordinal } of trials) {
    const isShown = caseName === 'negative-durations' && variant === 'small' && ordinal === 1;
    if (isShown) failed = trial;
    const took = 50_000 + random(70_000);
    const tokens = (variant === 'large' ? 60_000 : 25_000) + random(9_000);
    const passed = random(100) < chance;
    const result = isShown ? await failedTrial(ledger, clock.at) : shortTrial(clock.at, took, passed, tokens);
    await finish(ledger, clock, trial, result);
  }
  const record = shortTrial(clock.at, 3_000, true, 0);
  await ledger.gradings.add(voided, { verdict: 'passed', record, basis: 'x' });
  return { batch, earlier, hard, modelless: modelless.key, failed, voided, queued };
}

const day = 24 * 3_600_000;

/** The first batch of a set, with a trial that is void and one that is in the queue. */
async function fillHard(
  ledger: Ledger,
  clock: SetClock,
  random: (below: number) => number,
): Promise<Pick<Filled, 'hard' | 'voided' | 'queued'>> {
  const shared = { service: 'embedded', suite: checkout.suite, file: undefined };
  const plan = await ledger.blobs.putJson('a plan');
  const set = ledger.sets.add({ ...shared, id: 'set_7Wd0kQn4', plans: [plan, plan] });
  const [part] = ledger.sets.parts(set.key);
  const { key: start } = ledger.starts.add({ ...shared, plan, lock: 'batch-1', part: part?.key });
  const batch = { id: 'vE4mB9cUyh', suite: checkout.suite, repeats: 3, start };
  const { key, trials } = addBatch(ledger, batch, pairsOf(checkout.cases, checkout.variants));
  let voided: TrialKey = 0;
  let queued: TrialKey = 0;
  for (const { trial, caseName, variant, ordinal } of trials) {
    if (variant === checkout.variants[3] && ordinal === 2) {
      queued = trial;
      continue;
    }
    const isVoid = variant === 'codex/large' && caseName !== 'voucher' && ordinal > 0;
    if (isVoid) voided = trial;
    const result = shortTrial(clock.at, 240_000 + random(90_000), random(3) > 0, 180_000 + random(90_000));
    const found = isVoid ? { ...result, verdict: 'void' as const, cause: overloaded } : result;
    await finish(ledger, clock, trial, found);
  }
  return { hard: key, voided, queued };
}

interface Pair {
  caseName: string;
  variant: string;
  /** In percent that a trial passes. */
  chance: number;
}

function pairsOf(names: readonly string[], variants: readonly string[]): Pair[] {
  return names.flatMap((caseName) => variants.map((variant) => ({ caseName, variant, chance: 50 })));
}

interface Planned {
  key: BatchKey;
  trials: (Pair & { trial: TrialKey; ordinal: number })[];
}

interface Batch extends Partial<Pick<NewBatch, 'answers' | 'start'>> {
  id: string;
  suite: string;
  repeats: number;
}

function addBatch(ledger: Ledger, { id, repeats, ...batch }: Batch, planned: readonly Pair[]): Planned {
  const { key } = ledger.batches.add({
    service: 'embedded',
    id: `batch_${id}`,
    file: undefined,
    ...batch,
    runs: planned.map(({ caseName, variant }, taskIndex) => ({
      id: `run_${id}_${taskIndex}`,
      taskIndex,
      caseId: caseName,
      caseName,
      variant,
    })),
  });
  const ordinals = [...Array(repeats).keys()];
  ledger.queue.add(ledger.batches.runs(key).map((run) => ({ key: run.key, setup: undefined, ordinals })));
  const runs = ledger.batches.runs(key).map((run) => run.key);
  const trials = ledger.queue.ofBatch(key).flatMap(({ key: trial, run, ordinal }) => {
    const pair = planned[runs.indexOf(run)];
    return pair ? [{ ...pair, trial, ordinal }] : [];
  });
  return { key, trials };
}

/** Eight trials run at a time, so that the next one begins before this one ends. */
async function finish(ledger: Ledger, clock: SetClock, trial: TrialKey, result: TrialRecord): Promise<void> {
  const began = clock.at;
  const { verdict, cause, startedAt, finishedAt } = result;
  const attempt = ledger.trials.beginAttempt(trial);
  clock.at += finishedAt - startedAt;
  const outcome = { passed: verdict === 'passed' };
  const report = { caseName: 'any', ordinal: 0, taskIndex: 0, events: [], outcome };
  const record = result;
  await ledger.trials.finish(attempt, { verdict, cause, result: record, listing: listingOf(record), report });
  ledger.outbox.become(trial, 'delivered');
  clock.at = began + Math.round((finishedAt - startedAt) / 8);
}
