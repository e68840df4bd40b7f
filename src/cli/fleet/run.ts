import { type OpenBatch, openBatch } from '../../agent/batch-run.ts';
import { planParts } from '../../agent/run-set.ts';
import { leftOutText, plannedSuite, type TaskOptions } from '../../api/plan-suite.ts';
import { ciRun } from '../../api/types.ts';
import { inputError, OffsiteError } from '../../base/offsite-error.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import type { FleetConnection } from '../../fleet/connect.ts';
import {
  type FleetDocument,
  readDocument,
  refuseMachineParts,
  requirePlanned,
} from '../../fleet/document.ts';
import { countReported, joinBatch, pullBatch } from '../../fleet/pull-batch.ts';
import { rerun, voidCells } from '../../fleet/rerun.ts';
import { type FleetStart, startFleetBatch, startWorkflow } from '../../fleet/start-fleet-batch.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet, openStorage, refuseNumbers, requireService } from './control.ts';
import { type FollowOptions, type FollowParts, follow, type Watched, watched } from './follow.ts';

export interface FleetRunOptions extends CommonOptions, TaskOptions, FollowOptions, PlacingOptions {
  detach?: true | undefined;
  allowOutside?: string[] | undefined;
}

/** Starts a suite on the fleet, and watches it. Returns the exit code. */
export async function runOnFleet(file: string | undefined, options: FleetRunOptions): Promise<number> {
  await using context = CommandContext.open(options, { suite: file, creates: true });
  const { env } = context;
  refuseNumbers(options);
  using progress = await context.progress(options);
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const { plan: read, leftOut } = await plannedSuite(file, options, context, { progress, signal });
  const plan = { ...read, trigger: ciRun(env) };
  refuseMachineParts(plan);
  const storage = openStorage(context);
  const left = leftOutText(leftOut);
  if (left) progress.note(left);
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  await requireService(context);
  const reporting = await context.reporting();
  const watching = { context, progress, connection, storage, reporting };
  const batches: OpenBatch[] = [];
  const parts = planParts(plan);
  for (const part of parts) {
    const given = { ...startOf(watching, options), group: batches[0]?.id };
    const started = progress.step('starting the batch', () => startFleetBatch(part, given, signal));
    const batch = await started.catch((error: unknown) => {
      if (batches.length > 0) progress.note(partlyStarted(batches, parts));
      throw error;
    });
    batches.push(batch);
    const trials = plural(batch.runs.length * plan.trials, 'trial');
    progress.note(text`started batch ${batch.id} on the fleet: ${trials}`);
  }
  if (options.detach) {
    const ids = batches.map(({ id }) => id);
    const [batchId] = ids;
    if (options.json) context.out.json(ids.length === 1 ? { batchId } : { batchIds: ids });
    else for (const id of ids) context.out.print(id);
    progress.note(text`offsite fleet attach ${ids.join(' ')}`);
    return exitCodes.done;
  }
  return await follow(batches.map(watched), watching, options, signal);
}

/** What a person can do about a set of which only some batches run. */
function partlyStarted(batches: readonly OpenBatch[], parts: readonly SuitePlan[]): Printable {
  const ids = batches.map(({ id }) => id).join(' ');
  const [first, ...more] = parts.slice(batches.length).flatMap(({ cases }) => cases);
  const left = plural(more.length + 1, 'case');
  const from = text`${left} did not start, from ${first?.request.id ?? ''} on.`;
  const started = text`${String(batches.length)} of ${String(parts.length)} batches started and continue:`;
  return text`${started} offsite fleet attach ${ids}\n${from} Start them as a suite of their own.`;
}

/** Where, when and in what portions trials of a fleet run. */
export interface PlacingOptions {
  pool: string;
  priority: number;
  window: number;
  slice: number;
}

/** What starts a batch, by what watches it. */
function startOf(
  { context, connection, storage, reporting }: FollowParts,
  { pool, priority, window, slice }: PlacingOptions,
): FleetStart {
  const { clock, config, note } = context;
  const { client: temporal } = connection;
  return { ...reporting, clock, temporal, storage, config, note, pool, priority, window, slice };
}

export interface RerunOptions extends FollowOptions, PlacingOptions {
  detach?: true | undefined;
}

/** Runs the void trials of a batch again, as new runs of the batch. Returns the exit code. */
export async function rerunVoid(id: string, options: RerunOptions): Promise<number> {
  await using context = CommandContext.open(options, { creates: true });
  const { out } = context;
  refuseNumbers(options);
  const storage = openStorage(context);
  using progress = await context.progress(options);
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  const reporting = await context.reporting();
  const { ledger, client } = reporting;
  const parts = { context, progress, connection, storage, reporting };
  const batch = openBatch(await batchOf(id, () => connection, parts), ledger);
  const { cells, open } = await progress.step('looking for void trials', () =>
    voidCells(batch, client, signal),
  );
  if (open > 0) progress.note(`${plural(open, 'trial')} have no result yet and are not rerun`);
  if (cells.length === 0) {
    progress.note('the newest runs have no void trials');
    if (options.json) out.json({ batchId: id, trials: 0 });
    return exitCodes.done;
  }
  const given = startOf(parts, options);
  const again = await progress.step('starting the new runs', () => rerun(batch, cells, given, signal));
  const trials = cells.reduce((sum, cell) => sum + cell.trials, 0);
  const what = `${plural(trials, 'trial')} of ${plural(cells.length, 'cell')}`;
  progress.note(text`${what} run again: offsite fleet attach ${again.workflow}`);
  if (!options.detach) return await follow([again], parts, options, signal);
  if (options.json) out.json({ batchId: id, rerun: again.workflow, trials });
  else out.print(again.workflow);
  return exitCodes.done;
}

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
  parts: FollowParts,
  signal: AbortSignal,
): Promise<void> {
  const { reporting, progress } = parts;
  try {
    await handle.standing();
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'FLEET_BATCH_UNKNOWN') throw error;
    const runs = batch.runs.map(({ id, case: { request } }) => ({ id, caseId: request.id }));
    if ((await countReported(runs, reporting.client, signal)) > 0) throw error;
    const usual = { pool: 'default', priority: 3, window: 100, slice: 1_000 };
    if (await startWorkflow(batch, startOf(parts, usual), signal))
      progress.note('started its workflow, which was missing');
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
    throw inputError(
      'FLEET_OTHER_SERVICE',
      `batch ${handle.id} belongs to the service ${found.service}, not to ${service}`,
      { hint: "Name the batch's service: OFFSITE_URL, or service in offsite.yaml." },
    );
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
