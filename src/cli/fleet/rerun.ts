import { openBatch } from '../../agent/batch-run.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import { rerun, voidCells } from '../../fleet/rerun.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { openProgress } from '../output/progress.ts';
import { knownBatch } from './attach.ts';
import { type FollowOptions, follow } from './follow.ts';
import { openFleet, openStorage } from './open-fleet.ts';
import { type PlacingOptions, refuseNumbers } from './placing.ts';

export interface RerunOptions extends FollowOptions, PlacingOptions {
  detach?: true | undefined;
}

/** Runs the void trials of a batch again, as new runs of the batch. Returns the exit code. */
export async function rerunVoid(id: string, options: RerunOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { env, clock, err, out, config } = context;
  refuseNumbers(options);
  const storage = openStorage(context);
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
  const { signal } = context.interruption({ doing: () => 'no longer watching' });
  const connection = await progress.step('connecting to the fleet', () => openFleet(context));
  const { client: temporal } = connection;
  const reporting = await context.reporting();
  const { ledger, service, client } = reporting;
  const parts = { context, progress, connection, storage, reporting };
  const stored =
    ledger.batches.find(id).find((batch) => batch.service === service) ??
    (await knownBatch(new BatchHandle(id, temporal), parts)).stored;
  const batch = openBatch(stored, ledger);
  const { cells, open } = await progress.step('looking for void trials', () =>
    voidCells(batch, client, signal),
  );
  if (open > 0) progress.note(`${plural(open, 'trial')} have no result yet and are not rerun`);
  if (cells.length === 0) {
    progress.note('the newest runs have no void trials');
    if (options.json) out.json({ batchId: id, trials: 0 });
    return exitCodes.done;
  }
  const { pool, priority, window, slice } = options;
  const { note } = context;
  const given = { clock, temporal, storage, config, note, pool, priority, window, slice };
  const again = await progress.step('starting the new runs', () =>
    rerun(batch, cells, { ...reporting, ...given }, signal),
  );
  const trials = cells.reduce((sum, cell) => sum + cell.trials, 0);
  const what = `${plural(trials, 'trial')} of ${plural(cells.length, 'cell')}`;
  progress.note(text`${what} run again: offsite fleet attach ${again.workflow}`);
  if (!options.detach) return await follow([again], parts, options, signal);
  if (options.json) out.json({ batchId: id, rerun: again.workflow, trials });
  else out.print(again.workflow);
  return exitCodes.done;
}
