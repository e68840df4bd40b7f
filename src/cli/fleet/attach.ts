import { openBatch } from '../../agent/batch-run.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import { getDocument } from '../../fleet/document.ts';
import { joinBatch } from '../../fleet/pull-batch.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { CommandContext, type Reporting } from '../context.ts';
import { openProgress } from '../output/progress.ts';
import { type FollowOptions, follow } from './follow.ts';
import { openFleet, openStorage } from './open-fleet.ts';

/** Watches a batch of the fleet, wherever it was started. Returns the exit code. */
export async function attachTo(id: string, options: FollowOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { env, clock, err } = context;
  const storage = openStorage(context);
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const { client: temporal } = await progress.step('connecting to the fleet', () => openFleet(context));
  const reporting = await context.reporting();
  const handle = new BatchHandle(id, temporal);
  const stored = await knownBatch(handle, { context, storage, reporting });
  const batch = openBatch(stored, reporting.ledger);
  return await follow(batch, { context, progress, temporal, storage, reporting }, options, signal);
}

/** The batch in this ledger; put there from the storage if another machine started it. */
export async function knownBatch(
  handle: BatchHandle,
  { context, storage, reporting }: { context: CommandContext; storage: FleetStorage; reporting: Reporting },
): Promise<StoredBatch> {
  const { ledger, service } = reporting;
  const { memo } = await handle.standing();
  const document = String(memo.document);
  const found = await getDocument(document, storage, context.config);
  if (found.service !== service) {
    throw new OffsiteError(`batch ${handle.id} belongs to the service ${found.service}, not to ${service}`, {
      code: 'FLEET_OTHER_SERVICE',
      kind: 'input',
      hint: "Name the batch's service: OFFSITE_URL, or service in offsite.yaml.",
    });
  }
  return joinBatch(found, ledger);
}
