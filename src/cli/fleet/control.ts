import { inputError } from '../../base/offsite-error.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { BatchHandle, PollHandle } from '../../fleet/batch-handle.ts';
import { connectFleet, type FleetConnection } from '../../fleet/connect.ts';
import { fleetStatus } from '../../fleet/status.ts';
import { s3Storage } from '../../fleet/storage/s3-storage.ts';
import { type FleetStorage, folderStorage } from '../../fleet/storage/storage.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
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

interface PollOptions extends CommonOptions {
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
  if (suites.length + cases.length === 0)
    throw inputError('FLEET_NOTHING_TO_POLL', 'offsite.yaml names no suites or cases to poll', {
      hint: 'Name them: daemon: {suites: [ID]} or daemon: {cases: [ID]}. The daemon polls the same.',
    });
  // Workers look at no more workflows of trials than this.
  refuseNumbers({ priority, window }, fleetMessages.count.listed);
  // Queued runs reach the workers through it.
  openStorage(context);
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

/**
 * Throws `OPTION_INVALID`.
 *
 * @param most the largest window
 */
export function refuseNumbers(
  { priority, window, slice = 1 }: { priority: number; window: number; slice?: number },
  most: number = fleetMessages.count.open,
): void {
  const longest = fleetMessages.count.slice;
  const [problem, hint = ''] =
    priority > 5
      ? [`${priority} is no priority`, 'Choose one from 1, the most urgent, to 5.']
      : window > most
        ? [`a window of ${window} is too large`, `Choose at most ${most}: workflows keep track of each.`]
        : slice > longest
          ? [`${slice} trials are too many for one workflow`, `Choose at most ${longest}.`]
          : [];
  if (problem) throw inputError('OPTION_INVALID', problem, { hint });
}

/** Connects to the fleet's server. The context closes the connection. */
export async function openFleet(context: CommandContext, name?: string): Promise<FleetConnection> {
  const connection = await connectFleet(context.config.fleet, context.env, name);
  context.closeWith(connection);
  return connection;
}

/** The storage that the configuration names. Throws `FLEET_STORAGE_MISSING`. */
export function openStorage({ config }: CommandContext): FleetStorage {
  const { storage } = config.fleet;
  if (!storage)
    throw inputError('FLEET_STORAGE_MISSING', 'the fleet has no storage for plans and records', {
      hint: 'Name one in offsite.yaml: fleet: {storage: {folder: /mnt/offsite}}, or a bucket.',
    });
  return 'folder' in storage ? folderStorage(storage.folder) : s3Storage(storage.s3);
}

/** Throws `FLEET_SERVICE_MISSING` if the machines of a fleet would each use a service of their own. */
export async function requireService(context: CommandContext): Promise<void> {
  const { platform } = await context.service();
  if (!platform) return;
  throw inputError(
    'FLEET_SERVICE_MISSING',
    'the machines of a fleet need one Eval Service, and none is configured',
    { hint: 'Set OFFSITE_URL or service.url of offsite.yaml, on all machines. `offsite serve` is one.' },
  );
}
