import type { OpenBatch } from '../../agent/batch-run.ts';
import { planParts } from '../../agent/plan-parts.ts';
import { refuseMachineParts } from '../../fleet/machine-parts.ts';
import { startFleetBatch } from '../../fleet/start-fleet-batch.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { ciRun } from '../ci-run.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { openProgress } from '../output/progress.ts';
import { leftOutText, plannedSuite, type TaskOptions } from '../planned-suite.ts';
import { type FollowOptions, follow, watched } from './follow.ts';
import { openFleet, openStorage, requireService } from './open-fleet.ts';
import { type PlacingOptions, refuseNumbers } from './placing.ts';

export interface FleetRunOptions extends CommonOptions, TaskOptions, FollowOptions, PlacingOptions {
  detach?: true | undefined;
  allowOutside?: string[] | undefined;
}

/** Starts a suite on the fleet, and watches it. Returns the exit code. */
export async function runOnFleet(file: string | undefined, options: FleetRunOptions): Promise<number> {
  await using context = CommandContext.open(options, file === undefined ? {} : { suite: file });
  const { env, clock, err, config } = context;
  refuseNumbers(options);
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
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
  const { pool, priority, window, slice } = options;
  const batches: OpenBatch[] = [];
  for (const part of planParts(plan)) {
    const given = { clock, temporal, storage, config, note: context.note, pool, priority, window, slice };
    const batch = await progress.step('starting the batch', () =>
      startFleetBatch(part, { ...reporting, ...given, group: batches[0]?.id }, signal),
    );
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
