import { storedPlan } from '../agent/batch-run.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { fleetStorage } from '../bounds/fleet.ts';
import type { Client } from '../client/client.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { trialOf } from '../ledger/trial-rows.ts';
import { readRecord } from '../record/read-record.ts';
import { planFacts } from '../suite/plan.ts';
import type { FleetDocument } from './document.ts';
import type { FleetStorage } from './storage/storage.ts';

/** Puts a batch that another machine started into this ledger, unless it is there. */
export async function joinBatch(document: FleetDocument, ledger: Ledger): Promise<StoredBatch> {
  const { batch, service, suite, file, runs } = document;
  const plan = await ledger.blobs.putJson(storedPlan(document.plan));
  const { key } = ledger.batches.join({
    service,
    id: batch,
    suite,
    file,
    plan,
    lock: fleetLock,
    ...planFacts(document.plan),
    runs,
  });
  return ledger.batches.byKey(key);
}

/**
 * Copies from the storage the results of a batch that the ledger does not have, with all contents that they
 * name. Resolves with the number of results that it copied.
 */
export async function pullBatch(
  { id, service }: Pick<StoredBatch, 'id' | 'service'>,
  { ledger, storage }: { ledger: Ledger; storage: FleetStorage },
  signal: AbortSignal,
): Promise<number> {
  let pulled = 0;
  for await (const { run, ordinal, record } of storage.results(id)) {
    signal.throwIfAborted();
    const key = ledger.foundRuns.find(service, id, run);
    if (key === undefined) continue;
    const known = trialOf(ledger.records, key, ordinal);
    if (known && known.state !== 'queued') continue;
    const content = await storage.get(record, fleetStorage.bytes.document);
    const { verdict, fingerprint } = readRecord(parseForeignJson(content.toString('utf8')));
    await pullContents(content, { ledger, storage }, signal);
    const { sha256: result } = await ledger.blobs.put(content);
    if (ledger.fleetTasks.adopt(key, ordinal, { verdict, result, fingerprint })) pulled++;
  }
  return pulled;
}

async function pullContents(
  record: Buffer,
  { ledger, storage }: { ledger: Ledger; storage: FleetStorage },
  signal: AbortSignal,
): Promise<void> {
  for (const [named] of new Set(record.toString('utf8').matchAll(/[0-9a-f]{64}/g))) {
    signal.throwIfAborted();
    if (ledger.blobs.stat(named) === undefined && (await storage.has(named)))
      await ledger.blobs.put(await storage.get(named));
  }
}

/** For how many of a batch's trials the Eval Service has results. */
export async function countReported(
  runs: readonly { id: string; caseId: string }[],
  client: Pick<Client, 'runs'>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (const [caseId, ofCase] of Map.groupBy(runs, (run) => run.caseId)) {
    const wanted = new Set(ofCase.map(({ id }) => id));
    for await (const { id, trials = [] } of client.runs({ caseId }, { signal })) {
      if (!wanted.delete(id)) continue;
      count += trials.filter(({ status }) => status !== 'queued' && status !== 'running').length;
      if (wanted.size === 0) break;
    }
  }
  return count;
}
