import { BatchHandle } from '../../fleet/batch-handle.ts';
import { text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet } from './open-fleet.ts';

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
