import type { Client } from '../client/client.ts';
import type { RunRecord } from '../contract/record.ts';
import type { PulledRun, TrialKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { BatchRun, OpenBatch, OpenRun } from './batch-run.ts';
import { pullRuns } from './pull.ts';
import { ownTrialSpec } from './trial-spec.ts';

/** A trial of a batch that has no result yet. */
export interface QueuedTrial {
  key: TrialKey;
  run: BatchRun;
  ordinal: number;
  spec: TrialSpec;
}

/** A trial of a batch whose result is in the ledger. */
export interface DoneTrial {
  key: TrialKey;
  run: BatchRun;
  ordinal: number;
  /** The blob with the result. */
  result: string;
}

/** A run whose trials stay queued, since they cannot be made from what the service says of it. */
export interface RefusedRun {
  run: BatchRun;
  error: OffsiteError;
}

/**
 * The trials of a batch: those that are to be run, with what is to be done, and those that are done. Runs whose setup the ledger does
 * not have yet are pulled from the service, and their trials queued.
 */
export async function queueTrials(
  batch: OpenBatch,
  { client, ledger }: { client: Client; ledger: Ledger },
  signal: AbortSignal,
): Promise<{ queued: QueuedTrial[]; done: DoneTrial[]; refused: RefusedRun[] }> {
  const records = await pullSetups(batch, { client, ledger }, signal);
  const runs = new Map(batch.runs.map((run) => [run.key, run]));
  const queued: QueuedTrial[] = [];
  const done: DoneTrial[] = [];
  const refused = new Map<number, RefusedRun>();
  for (const { key, run: runKey, ordinal, result } of ledger.queue.ofBatch(batch.key)) {
    const run = runs.get(runKey);
    const record = records.get(runKey);
    if (!run || !record) throw new Error(`trial ${key} is of a run that the batch does not have`);
    if (result !== undefined) {
      done.push({ key, run, ordinal, result });
      continue;
    }
    const { prompt, id: batchId, plan } = batch;
    try {
      const spec = ownTrialSpec({ ...run, record, prompt, batchId, judges: plan.judges }, ordinal);
      queued.push({ key, run, ordinal, spec });
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      refused.set(runKey, { run, error });
    }
  }
  return { queued, done, refused: [...refused.values()] };
}

/** What of a run's record a trial is made from. */
type Setup = Pick<RunRecord, 'id' | 'setup'>;

/** Pulls the setups that the ledger does not have yet and queues those runs' trials, whatever the setups say. By run key. */
export async function pullSetups(
  batch: OpenBatch,
  { client, ledger }: { client: Client; ledger: Ledger },
  signal: AbortSignal,
): Promise<Map<number, Setup>> {
  const records = new Map<number, Setup>();
  for (const { key, id, setup } of batch.runs) {
    if (setup !== undefined)
      records.set(key, { id, setup: ledger.blobs.readJson(setup) as RunRecord['setup'] });
  }
  const unknown = batch.runs.filter(({ key }) => !records.has(key));
  if (unknown.length === 0) return records;
  const started = unknown.map((run) => ({ id: run.id, caseId: run.case.request.id }));
  const pulled = await pullRuns(client, started, signal);
  const toQueue: PulledRun[] = [];
  for (const run of unknown) {
    const record = pulled.get(run.id);
    if (!record) throw new Error(`run ${run.id} was pulled but is not here`);
    records.set(run.key, record);
    toQueue.push(await pulledRun(run, record, batch.plan.trials, ledger));
  }
  ledger.queue.add(toQueue);
  return records;
}

async function pulledRun(
  run: OpenRun,
  record: RunRecord,
  trials: number,
  ledger: Ledger,
): Promise<PulledRun> {
  const listed = record.trials?.map(({ ordinal }) => ordinal) ?? [];
  // A service may list a trial only once it is recorded.
  const ordinals = listed.length > 0 ? listed : Array.from({ length: trials }, (_, n) => n);
  const setup = record.setup && (await ledger.blobs.putJson(record.setup));
  return { run: run.key, setup, variantId: record.variant?.id, ordinals };
}
