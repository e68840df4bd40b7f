import { OffsiteError } from '../base/offsite-error.ts';
import type { Client } from '../client/client.ts';
import type { ListedRun } from '../client/pages/page-reader.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PulledRun } from '../ledger/queue.ts';
import type { BatchRun, OpenBatch } from './batch-run.ts';

interface PullParts {
  client: Client;
  ledger: Ledger;
}

/**
 * Pulls the setups that the ledger does not have yet, and queues the trials of their runs, even if a setup is
 * unusable.
 */
export async function pullSetups(batch: OpenBatch, parts: PullParts, signal: AbortSignal): Promise<void> {
  parts.ledger.queue.add(await missingSetups(batch, parts, signal));
}

/** Pulls the setups that the ledger does not have yet, into its blobs. */
export async function missingSetups(
  batch: OpenBatch,
  { client, ledger }: PullParts,
  signal: AbortSignal,
): Promise<PulledRun[]> {
  const unknown = batch.runs.filter(({ setup }) => setup === undefined);
  if (unknown.length === 0) return [];
  const started = unknown.map((run) => ({ id: run.id, caseId: run.case.request.id }));
  const pulled = await pullRuns(client, started, signal);
  const pulledRuns: PulledRun[] = [];
  for (const run of unknown) {
    const record = pulled.get(run.id);
    if (!record) throw new Error(`run ${run.id} was pulled but its record is missing`);
    pulledRuns.push(await pulledRun(run, record, batch.plan.trials, ledger));
  }
  return pulledRuns;
}

async function pulledRun(
  run: BatchRun,
  record: ListedRun<'setup'>,
  trials: number,
  ledger: Ledger,
): Promise<PulledRun> {
  const listed = record.trials?.map(({ ordinal }) => ordinal) ?? [];
  // A service may list a trial only after the trial is recorded.
  const ordinals = listed.length > 0 ? listed : Array.from({ length: trials }, (_, n) => n);
  const setup = record.setup && (await ledger.blobs.putJson(record.setup));
  return { run: run.key, setup, variantId: record.variant?.id, ordinals };
}

/**
 * The run records that the service has now, by run id. Reads page after page of each case until all its runs
 * are found. Throws `RUN_NOT_LISTED` if the service does not list a run that it started.
 */
async function pullRuns(
  client: Client,
  started: readonly { id: string; caseId: string }[],
  signal: AbortSignal,
): Promise<Map<string, ListedRun<'setup'>>> {
  const records = new Map<string, ListedRun<'setup'>>();
  for (const [caseId, runs] of Map.groupBy(started, (run) => run.caseId)) {
    const wanted = new Set(runs.map(({ id }) => id));
    const setups = { parts: 'setup', of: ({ id }: ListedRun) => wanted.has(id) } as const;
    for await (const record of client.runs({ caseId }, { signal, ...setups })) {
      if (!wanted.delete(record.id)) continue;
      records.set(record.id, record);
      if (wanted.size === 0) break;
    }
    if (wanted.size > 0) {
      throw new OffsiteError(
        `the service started run ${[...wanted].join(', ')} but does not list it for case ${caseId}`,
        {
          code: 'RUN_NOT_LISTED',
          kind: 'infrastructure',
          hint: 'Check that the key may read runs (evals:read) and belongs to the right organization.',
        },
      );
    }
  }
  return records;
}
