import { type OpenBatch, openBatch } from '../../agent/batch-run.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import { getPlanned } from '../../fleet/document.ts';
import { joinBatch } from '../../fleet/pull-batch.ts';
import { countReported } from '../../fleet/reported.ts';
import { startWorkflow } from '../../fleet/start-fleet-batch.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { CommandContext, type Reporting } from '../context.ts';
import { openProgress } from '../output/progress.ts';
import { type FollowOptions, type FollowParts, follow } from './follow.ts';
import { openFleet, openStorage } from './open-fleet.ts';

/** Watches a batch of the fleet, wherever it was started. Returns the exit code. */
export async function attachTo(id: string, options: FollowOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { env, clock, err } = context;
  const storage = openStorage(context);
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  const { client: temporal } = connection;
  const reporting = await context.reporting();
  const handle = new BatchHandle(id, temporal);
  const own = reporting.ledger.batches.find(id).find(({ service }) => service === reporting.service);
  const stored = own ?? (await knownBatch(handle, { context, storage, reporting }));
  const batch = openBatch(stored, reporting.ledger);
  if (own) await startIfMissing(batch, handle, { context, progress, connection, storage, reporting }, signal);
  return await follow(batch, { context, progress, connection, storage, reporting }, options, signal);
}

/**
 * Starts the workflow of a batch of this machine whose `fleet run` died before it could. A batch that has results
 * has had its workflow.
 */
async function startIfMissing(
  batch: OpenBatch,
  handle: BatchHandle,
  { context, connection, storage, reporting, progress }: FollowParts,
  signal: AbortSignal,
): Promise<void> {
  const { config, clock } = context;
  try {
    await handle.standing();
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'FLEET_BATCH_UNKNOWN') throw error;
    const runs = batch.runs.map(({ id, case: { request } }) => ({ id, caseId: request.id }));
    if ((await countReported(runs, reporting.client, signal)) > 0) throw error;
    const usual = { pool: 'default', priority: 3, window: 100 };
    const { client: temporal } = connection;
    const { note } = context;
    const parts = { ...reporting, clock, temporal, storage, config, note, ...usual };
    if (await startWorkflow(batch, parts, signal)) progress.note('started its workflow, which was missing');
  }
}

/** The batch in this ledger; put there from the storage if another machine started it. */
export async function knownBatch(
  handle: BatchHandle,
  { context, storage, reporting }: { context: CommandContext; storage: FleetStorage; reporting: Reporting },
): Promise<StoredBatch> {
  const { ledger, service } = reporting;
  const { memo } = await handle.standing();
  const document = String(memo.document);
  const found = await getPlanned(document, storage, context.config);
  if (found.service !== service) {
    throw new OffsiteError(`batch ${handle.id} belongs to the service ${found.service}, not to ${service}`, {
      code: 'FLEET_OTHER_SERVICE',
      kind: 'input',
      hint: "Name the batch's service: OFFSITE_URL, or service in offsite.yaml.",
    });
  }
  return joinBatch(found, ledger);
}
