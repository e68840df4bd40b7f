import { OffsiteError } from '../../base/offsite-error.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { PollHandle } from '../../fleet/poll-handle.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet, openStorage, requireService } from './open-fleet.ts';

export interface PollOptions extends CommonOptions {
  pool: string;
  priority: number;
  window: number;
  stop?: true | undefined;
}

/** Starts the poll of the fleet, or ends it. */
export async function pollQueuedRuns(options: PollOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const { config, out, clock } = context;
  const { pool, priority, window, stop } = options;
  if (stop) {
    const handle = new PollHandle(await openFleet(context));
    const stopped = await handle.stop(clock);
    if (options.json) out.json({ stopped });
    else
      out.print(
        stopped
          ? text`the fleet no longer polls for queued runs; started trials continue`
          : text`the fleet does not poll for queued runs`,
      );
    return;
  }
  const { suites, cases, poll: every } = config.daemon;
  if (suites.length + cases.length === 0) throw nothingToPoll();
  requireRange({ priority, window });
  if (!openStorage(context)) throw noStorage();
  await requireService(context);
  const { name: service } = await context.service();
  const connection = await openFleet(context);
  const { taskQueue, heartbeat: heartbeatMs } = connection.fleet;
  const trials = { taskQueue, pool, window, heartbeatMs, priority };
  const input = { service, suites, cases, every, trials, since: clock.now() };
  await new PollHandle(connection).start(input);
  if (options.json) out.json(input);
  else
    out.print(
      text`the fleet polls ${plural(suites.length, 'suite')} and ${plural(cases.length, 'case')} for queued runs; offsite fleet status shows them`,
    );
}

function requireRange({ priority, window }: { priority: number; window: number }): void {
  // Workers look at no more workflows of trials than this.
  const most = fleetMessages.count.listed;
  if (priority <= 5 && window <= most) return;
  throw new OffsiteError('the priority or the window is out of range', {
    code: 'OPTION_INVALID',
    kind: 'input',
    hint: `A priority is from 1, the most urgent, to 5, and a window at most ${most}.`,
  });
}

function noStorage(): OffsiteError {
  return new OffsiteError('queued runs reach the workers through a storage, and the fleet has none', {
    code: 'FLEET_STORAGE_MISSING',
    kind: 'input',
    hint: 'Name one in offsite.yaml: fleet: {storage: {folder: /mnt/offsite}}, or a bucket.',
  });
}

function nothingToPoll(): OffsiteError {
  return new OffsiteError('offsite.yaml names no suites or cases to poll', {
    code: 'FLEET_NOTHING_TO_POLL',
    kind: 'input',
    hint: 'Name them: daemon: {suites: [ID]} or daemon: {cases: [ID]}. The daemon polls the same.',
  });
}
