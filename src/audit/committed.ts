import { ReportedTrial } from '../contract/report.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { ListedTrial } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { digestOfReport, digestOfSetup } from '../service/record/digests.ts';

/** What a service can compare with what it has itself. Undefined where it is missing or cannot be read. */
export interface Committed {
  /** The sha256 of the record. */
  record: string | undefined;
  report: string | undefined;
  setup: string | undefined;
}

/** Digests of what the ledger has of the trials of a batch. */
export function committedBy({ batches, blobs, outbox }: Ledger, { key }: StoredBatch) {
  const setups = new Map(
    batches
      .runs(key)
      .map((run) => [
        run.key,
        run.setup === undefined ? undefined : digestOf(() => digestOfSetup(blobs.readJson(run.setup ?? ''))),
      ]),
  );
  return (trial: ListedTrial): Committed => ({
    record: trial.result,
    report: digestOf(() => digestOfReport(trial.runId, ReportedTrial.parse(outbox.body(trial.key)))),
    setup: setups.get(trial.run),
  });
}

function digestOf(make: () => string): string | undefined {
  try {
    return make();
  } catch {
    // The levels of the audit say what is wrong.
    return undefined;
  }
}
