import { BatchHandle } from '../../fleet/batch-handle.ts';
import { fleetStatus } from '../../fleet/status.ts';
import { text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet, openStorage } from './open-fleet.ts';
import { statusText } from './status-text.ts';

const said = {
  pause: 'paused: trials that workers hold continue, no other trial is scheduled',
  unpause: 'trials are scheduled again',
  cancel: 'canceled: its trials end now',
};

export async function control(what: keyof typeof said, id: string, options: CommonOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const { client } = await openFleet(context);
  await new BatchHandle(id, client)[what]();
  context.out.print(text`batch ${id}: ${said[what]}`);
}

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
