import { type OpenBatch, openBatch } from '../../agent/batch-run.ts';
import { planParts } from '../../agent/run-set.ts';
import { leftOutText, plannedSuite, type TaskOptions } from '../../api/plan-suite.ts';
import { ciRun } from '../../api/types.ts';
import { refuseMachineParts } from '../../fleet/document.ts';
import { rerun, voidCells } from '../../fleet/rerun.ts';
import { startFleetBatch } from '../../fleet/start-fleet-batch.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
import { batchOf } from './attach.ts';
import { openFleet, openStorage, refuseNumbers, requireService } from './control.ts';
import { type FollowOptions, follow, watched } from './follow.ts';

export interface FleetRunOptions extends CommonOptions, TaskOptions, FollowOptions, PlacingOptions {
  detach?: true | undefined;
  allowOutside?: string[] | undefined;
}

/** Starts a suite on the fleet, and watches it. Returns the exit code. */
export async function runOnFleet(file: string | undefined, options: FleetRunOptions): Promise<number> {
  await using context = CommandContext.open(options, { suite: file, creates: true });
  const { env, clock, config } = context;
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
  const { client: temporal } = connection;
  await requireService(context);
  const reporting = await context.reporting();
  const batches: OpenBatch[] = [];
  const parts = planParts(plan);
  for (const part of parts) {
    const given = {
      ...reporting,
      clock,
      temporal,
      storage,
      config,
      note: context.note,
      ...placingOf(options),
    };
    const started = progress.step('starting the batch', () =>
      startFleetBatch(part, { ...given, group: batches[0]?.id }, signal),
    );
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
  return await follow(
    batches.map(watched),
    { context, progress, connection, storage, reporting },
    options,
    signal,
  );
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

function placingOf({ pool, priority, window, slice }: PlacingOptions): PlacingOptions {
  return { pool, priority, window, slice };
}

export interface RerunOptions extends FollowOptions, PlacingOptions {
  detach?: true | undefined;
}

/** Runs the void trials of a batch again, as new runs of the batch. Returns the exit code. */
export async function rerunVoid(id: string, options: RerunOptions): Promise<number> {
  await using context = CommandContext.open(options, { creates: true });
  const { clock, out, config } = context;
  refuseNumbers(options);
  const storage = openStorage(context);
  using progress = await context.progress(options);
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  const { client: temporal } = connection;
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
  const given = { ...reporting, clock, temporal, storage, config, note: context.note, ...placingOf(options) };
  const again = await progress.step('starting the new runs', () => rerun(batch, cells, given, signal));
  const trials = cells.reduce((sum, cell) => sum + cell.trials, 0);
  const what = `${plural(trials, 'trial')} of ${plural(cells.length, 'cell')}`;
  progress.note(text`${what} run again: offsite fleet attach ${again.workflow}`);
  if (!options.detach) return await follow([again], parts, options, signal);
  if (options.json) out.json({ batchId: id, rerun: again.workflow, trials });
  else out.print(again.workflow);
  return exitCodes.done;
}
