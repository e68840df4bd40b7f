import { type OpenBatch, openBatch } from '../../agent/batch-run.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import type { FleetConnection } from '../../fleet/connect.ts';
import { type FleetDocument, readDocument, requirePlanned } from '../../fleet/document.ts';
import { countReported, joinBatch, pullBatch } from '../../fleet/pull-batch.ts';
import { startWorkflow } from '../../fleet/start-fleet-batch.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet, openStorage } from './control.ts';
import type { Watched } from './fleet-display.ts';
import { type FollowOptions, type FollowParts, follow, watched } from './follow.ts';

/** Watches batches of the fleet, wherever they were started, as one. Returns the exit code. */
export async function attachTo(ids: readonly string[], options: FollowOptions): Promise<number> {
  await using context = CommandContext.open(options, { creates: true });
  const storage = openStorage(context);
  using progress = await context.progress(options);
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  const reporting = await context.reporting();
  const parts = { context, progress, connection, storage, reporting };
  const batches: Watched[] = [];
  for (const id of new Set(ids)) batches.push(await attached(id, parts, signal));
  return await follow(batches, parts, options, signal);
}

async function attached(id: string, parts: FollowParts, signal: AbortSignal): Promise<Watched> {
  const { connection, reporting } = parts;
  const { ledger, service } = reporting;
  const handle = new BatchHandle(id, connection.client);
  const own = ledger.batches.find(id).find((batch) => batch.service === service);
  if (own) {
    const batch = openBatch(own, ledger);
    await startIfMissing(batch, handle, parts, signal);
    return watched(batch);
  }
  const { stored, document } = await knownBatch(handle, parts);
  const batch = openBatch(stored, ledger);
  const trials = new Map(document.runs.map((run) => [run.id, run.trials ?? document.trials]));
  return { workflow: id, batch: { ...batch, runs: batch.runs.filter((run) => trials.has(run.id)) }, trials };
}

/**
 * Starts the workflow of a batch of this machine whose `fleet run` died before it could. Throws if the batch
 * has results: its workflow has run, and Temporal no longer has it.
 */
async function startIfMissing(
  batch: OpenBatch,
  handle: BatchHandle,
  { context, connection, storage, reporting, progress }: FollowParts,
  signal: AbortSignal,
): Promise<void> {
  const { config, clock, note } = context;
  try {
    await handle.standing();
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'FLEET_BATCH_UNKNOWN') throw error;
    const runs = batch.runs.map(({ id, case: { request } }) => ({ id, caseId: request.id }));
    if ((await countReported(runs, reporting.client, signal)) > 0) throw error;
    const usual = { pool: 'default', priority: 3, window: 100, slice: 1_000 };
    const { client: temporal } = connection;
    const parts = { ...reporting, clock, temporal, storage, config, note, ...usual };
    if (await startWorkflow(batch, parts, signal)) progress.note('started its workflow, which was missing');
  }
}

type KnownParts = Pick<FollowParts, 'context' | 'storage' | 'reporting'>;

/** A batch of the ledger, or else of the fleet. Throws as {@link knownBatch} does. */
export async function batchOf(
  id: string,
  connect: () => Promise<FleetConnection> | FleetConnection,
  parts: KnownParts,
): Promise<StoredBatch> {
  const { ledger, service } = parts.reporting;
  const own = ledger.batches.find(id).find((batch) => batch.service === service);
  return own ?? (await knownBatch(new BatchHandle(id, (await connect()).client), parts)).stored;
}

/** A batch that this ledger does not have, or not with all runs: its plan is in the storage. */
async function knownBatch(
  handle: BatchHandle,
  { context, storage, reporting }: KnownParts,
): Promise<{ stored: StoredBatch; document: FleetDocument }> {
  const { ledger, service } = reporting;
  const { memo } = await handle.standing();
  const content = await storage.get(String(memo.document), fleetStorage.bytes.document);
  const found = requirePlanned(readDocument(content, context.config));
  if (found.service !== service) {
    throw new OffsiteError(`batch ${handle.id} belongs to the service ${found.service}, not to ${service}`, {
      code: 'FLEET_OTHER_SERVICE',
      kind: 'input',
      hint: "Name the batch's service: OFFSITE_URL, or service in offsite.yaml.",
    });
  }
  return { stored: await joinBatch(found, ledger), document: found };
}

/** Brings the records of a batch into this data folder. Returns the exit code. */
export async function pull(id: string, options: CommonOptions): Promise<number> {
  await using context = CommandContext.open(options, { creates: true });
  const { out } = context;
  const storage = openStorage(context);
  const { signal } = context.interruption({ doing: () => 'stopping; what was brought stays' });
  const reporting = await context.reporting();
  const { ledger } = reporting;
  const batch = await batchOf(id, () => openFleet(context), { context, storage, reporting });
  const records = await pullBatch(batch, { ledger, storage }, signal);
  if (options.json) out.json({ batchId: id, records });
  else out.print(text`brought ${plural(records, 'record')} of batch ${id}; offsite show ${id}`);
  return exitCodes.done;
}
