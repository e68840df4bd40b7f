import type { TrialKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { readRecord } from '../../record/read-record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { usageOf } from '../../record/usage.ts';
import type { FleetStorage } from '../storage/storage.ts';
import type { TrialSummary } from '../workflow/messages.ts';

/**
 * Puts a trial's record into the storage, if there is one, after all contents that the record names. Resolves
 * with the trial's summary.
 */
export async function storeRecord(
  trial: TrialKey,
  { ledger, storage, worker }: { ledger: Ledger; storage: FleetStorage | undefined; worker: string },
): Promise<TrialSummary> {
  const { blobs } = ledger;
  const sha256 = ledger.fleetTasks.resultOf(trial);
  const summary = summaryOf(readRecord(blobs.readJson(sha256)), sha256, worker);
  if (!storage) return { ...summary, folder: ledger.dataFolder };
  const content = blobs.read(sha256);
  for (const [named] of new Set(content.toString('utf8').matchAll(/[0-9a-f]{64}/g))) {
    // Records also name images, which are no contents of ours.
    const found = (await storage.has(named)) ? undefined : blobs.tryRead(named);
    if (found) await storage.put(named, found);
  }
  await storage.put(sha256, content);
  return summary;
}

function summaryOf(record: TrialRecord, sha256: string, worker: string): TrialSummary {
  const { verdict, cause, startedAt, finishedAt } = record;
  const { totalTokens: tokens, costUsd: usd } = usageOf(record) ?? {};
  return {
    verdict,
    ...(cause && { cause: cause.kind }),
    ms: finishedAt - startedAt,
    tokens,
    usd,
    record: sha256,
    worker,
  };
}
