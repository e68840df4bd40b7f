import { planParts } from '../../agent/plan-parts.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { refuseContexts, startFleetBatch } from '../../fleet/start-fleet-batch.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { ciRun } from '../ci-run.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { openProgress } from '../output/progress.ts';
import { leftOutText, plannedSuite, type TaskOptions } from '../planned-suite.ts';
import { type FollowOptions, follow } from './follow.ts';
import { openFleet, openStorage, requireService } from './open-fleet.ts';

export interface FleetRunOptions extends CommonOptions, TaskOptions, FollowOptions {
  pool: string;
  priority: number;
  window: number;
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
  refuseContexts(plan);
  if (planParts(plan).length > 1) throw tooManyCases(plan.cases.length);
  const storage = openStorage(context);
  const left = leftOutText(leftOut);
  if (left) progress.note(left);
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  const { client: temporal } = connection;
  await requireService(context);
  const reporting = await context.reporting();
  const { pool, priority, window } = options;
  const batch = await progress.step('starting the batch', () =>
    startFleetBatch(
      plan,
      { ...reporting, ...{ clock, temporal, storage, config, pool, priority, window }, note: context.note },
      signal,
    ),
  );
  progress.note(
    text`started batch ${batch.id} on the fleet: ${plural(batch.runs.length * plan.trials, 'trial')}`,
  );
  if (options.detach) {
    if (options.json) context.out.json({ batchId: batch.id });
    else context.out.print(batch.id);
    progress.note(text`offsite fleet attach ${batch.id}`);
    return exitCodes.done;
  }
  return await follow(batch, { context, progress, connection, storage, reporting }, options, signal);
}

function tooManyCases(cases: number): OffsiteError {
  return new OffsiteError(`a batch of the fleet cannot have ${cases} cases`, {
    code: 'TOO_MANY_CASES',
    kind: 'input',
    hint: 'Choose at most 100, with --include or --limit, and start the others as further batches.',
  });
}

function refuseNumbers({ priority, window }: FleetRunOptions): void {
  const most = fleetMessages.count.open;
  const wrong =
    priority > 5
      ? [`${priority} is no priority`, 'Choose one from 1, the most urgent, to 5.']
      : window > most
        ? [`a window of ${window} is too large`, `Choose at most ${most}: the workflow keeps track of each.`]
        : undefined;
  if (wrong)
    throw new OffsiteError(wrong[0] ?? '', { code: 'OPTION_INVALID', kind: 'input', hint: wrong[1] ?? '' });
}
