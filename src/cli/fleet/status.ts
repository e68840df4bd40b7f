import { BatchHandle, batchesInProgress } from '../../fleet/batch-handle.ts';
import { fleetStatus } from '../../fleet/status.ts';
import { ours, stack, text } from '../../text/printable.ts';
import { elapsed, plural } from '../../text/quantities.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { openFleet } from './open-fleet.ts';

/** Prints the workers and the batches in progress. Returns the exit code. */
export async function showFleet(options: CommonOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { out, clock } = context;
  const connection = await openFleet(context);
  const ids = await batchesInProgress(connection.client);
  const { workers, batches } = await fleetStatus(
    connection,
    ids.map((id) => new BatchHandle(id, connection.client)),
    clock,
  );
  if (options.json) {
    out.json({ workers, batches });
    return exitCodes.done;
  }
  out.print(
    stack([
      text`${plural(workers.length, 'worker')}${ours(workers.length > 0 ? ':' : '')}`,
      ...workers.map(
        ({ name, pools, silentMs }) =>
          text`  ${name}  ${pools.join(', ')}  seen ${ours(elapsed(silentMs))} ago`,
      ),
      text`${ours(batches.length === 1 ? '1 batch' : `${batches.length} batches`)}${ours(batches.length > 0 ? ':' : '')}`,
      ...batches.map(({ id, suite, held, progress }) => {
        const { passed = 0, failed = 0, void: without = 0, trials = 0, isPaused = false } = progress ?? {};
        const done = `${passed + failed + without} of ${trials}`;
        const state = progress ? (isPaused ? 'paused' : done) : 'no worker answers';
        return text`  ${id}  ${suite}  ${state}, ${String(held)} held by workers`;
      }),
    ]),
  );
  return exitCodes.done;
}
