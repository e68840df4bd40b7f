import type { ReportedTrial } from '../../src/contract/report.ts';
import type { BatchKey, TrialKey } from '../../src/ledger/batches.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';

/** A report of any trial. */
export const report: ReportedTrial = {
  caseName: 'A',
  ordinal: 0,
  taskIndex: 0,
  events: [],
  outcome: { passed: true },
};

/** Queues another trial of a batch's first run and returns its key. */
export function queueTrial(ledger: Ledger, batch: BatchKey, ordinal: number): TrialKey {
  const [run] = ledger.batches.runs(batch);
  if (!run) throw new Error('the batch has no run');
  ledger.queue.add([{ key: run.key, setup: undefined, ordinals: [ordinal] }]);
  const added = ledger.queue.ofBatch(batch).find((trial) => trial.ordinal === ordinal);
  if (!added) throw new Error('the trial is not there');
  return added.key;
}
