import type { BatchKey, TrialKey } from '../../src/ledger/batches.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { StartKey } from '../../src/ledger/starts.ts';
import type { Cause } from '../../src/record/cause.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { report } from '../ledger/queue-trial.ts';

/** What a trial of a test's ledger found. */
export type Found = Partial<TrialRecord> & Pick<TrialRecord, 'verdict'>;

export interface BatchToFill {
  id: string;
  /** The start that it comes from. */
  start?: StartKey;
  suite?: string;
  cases: readonly string[];
  variants: readonly string[];
  repeats?: number;
  /** What each trial found; undefined leaves it in the queue. */
  found: (caseName: string, variant: string, ordinal: number) => Found | undefined;
}

/** A whole record of what a trial found. Its times begin at 1 000 000. */
function result(found: Found): TrialRecord {
  return {
    startedAt: 1_000_000,
    finishedAt: 1_060_000,
    phases: [],
    modelUnmeasured: false,
    ...found,
    version: recordVersion,
  };
}

/** Fills a ledger with a batch, by the ways of the program itself. */
export async function fillBatch(ledger: Ledger, batch: BatchToFill): Promise<BatchKey> {
  const { id, start, suite = 'Suite', cases, variants, repeats = 1, found } = batch;
  const pairs = cases.flatMap((caseName) => variants.map((variant) => ({ caseName, variant })));
  const { key } = ledger.batches.add({
    service: 'embedded',
    id,
    suite,
    file: undefined,
    start,
    runs: pairs.map(({ caseName, variant }, index) => ({
      id: `${id}-run-${index}`,
      taskIndex: index,
      caseId: caseName,
      caseName,
      variant,
    })),
  });
  const runs = ledger.batches.runs(key);
  const ordinals = [...Array(repeats).keys()];
  ledger.queue.add(runs.map(({ key }) => ({ key, setup: undefined, ordinals })));
  const places = new Map(runs.map(({ key: run }, index) => [run, pairs[index]]));
  for (const trial of ledger.queue.ofBatch(key)) {
    const { caseName = '', variant = '' } = places.get(trial.run) ?? {};
    const what = found(caseName, variant, trial.ordinal);
    if (what) await finishTrial(ledger, trial.key, what);
  }
  return key;
}

/** Runs a trial of the queue to its end. */
export async function finishTrial(ledger: Ledger, trial: TrialKey, found: Found): Promise<void> {
  const attempt = ledger.trials.beginAttempt(trial);
  await ledger.trials.finish(attempt, {
    verdict: found.verdict,
    cause: found.cause,
    result: result(found),
    report,
    fingerprint: found.fingerprint,
  });
}

/** Ends an attempt of a trial that is tried again. */
export async function failAttempt(ledger: Ledger, trial: TrialKey, cause: Cause): Promise<void> {
  const attempt = ledger.trials.beginAttempt(trial);
  await ledger.trials.abandonAttempt(attempt, 'void', cause, result({ verdict: 'void', cause }));
}
