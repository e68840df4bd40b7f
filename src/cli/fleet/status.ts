import { fleetStatus } from '../../fleet/status.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet, openStorage } from './open-fleet.ts';
import { statusText } from './status-text.ts';

/** Prints the workers, the batches in progress and the poll. Returns the exit code. */
export async function showFleet(options: CommonOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { out, clock } = context;
  const storage = openStorage(context);
  const status = await fleetStatus({ connection: await openFleet(context), storage, clock });
  if (options.json) out.json(status);
  else out.print(statusText(status, clock.now()));
  return exitCodes.done;
}
