import { isGrpcDeadlineError } from '@temporalio/client';
import type { Clock } from '../base/clock.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import type { FleetConnection } from './connect.ts';
import { WorkerProfile } from './placement.ts';
import type { FleetStorage } from './storage/storage.ts';

/** A worker that polled in the last minutes. */
export interface SeenWorker {
  /** `machine/agent/trials at a time` */
  name: string;
  /** Milliseconds since the server saw it. */
  silentMs: number;
  /** Whether it has been silent for so long that it counts as gone. */
  isSilent: boolean;
  /** Undefined without a readable one in the storage. */
  profile: WorkerProfile | undefined;
}

/** `TASK_QUEUE_TYPE_ACTIVITY` of Temporal's API. */
const activityQueue = 2;

/** Milliseconds between two signs of life of one worker, and of all workers of the fleet together. */
const everyMs = { least: 2_000, most: 60_000, together: 200 };

/** Milliseconds between two signs of life of a worker, in a fleet of this size. */
export function presenceMs(workers: number): number {
  return Math.min(everyMs.most, Math.max(everyMs.least, workers * everyMs.together));
}

/** Milliseconds after which a silent worker counts as gone: it has missed several signs of life. */
function goneMs(workers: number): number {
  return Math.max(15_000, 3 * presenceMs(workers));
}

/** Whether a worker is there and takes trials. */
export function isThere({ isSilent, profile }: SeenWorker): boolean {
  return !isSilent && profile?.ended !== true;
}

/**
 * Shows the fleet that this worker is there. Workers of all versions poll one queue, into which nobody puts a
 * task, and the server names who polled it in the last minutes.
 */
export async function showPresence({ connection, fleet }: FleetConnection, identity: string): Promise<void> {
  const { namespace, taskQueue } = fleet;
  const request = { namespace, taskQueue: { name: taskQueue }, identity };
  // The server refuses a poll of less than two seconds.
  const until = Date.now() + fleetMessages.time.presence;
  await connection
    .withDeadline(until, () => connection.workflowService.pollActivityTaskQueue(request))
    .catch((error: unknown) => {
      if (!isGrpcDeadlineError(error)) throw error;
    });
}

/** The workers of all versions that polled in the last minutes, by name. */
export async function seenWorkers(
  connection: FleetConnection,
  storage: FleetStorage,
  clock: Clock,
): Promise<SeenWorker[]> {
  const seen = await pollersOf(connection);
  const now = clock.now();
  const workers = [...seen].slice(0, fleetMessages.count.workers).map(async ([name, at]) => {
    const silentMs = Math.max(0, now - at);
    const profile = await profileOf(name, storage);
    return { name, silentMs, isSilent: silentMs > goneMs(seen.size), profile };
  });
  return (await Promise.all(workers)).toSorted((one, other) => one.name.localeCompare(other.name));
}

/** When the server saw each worker last, in epoch milliseconds. */
export async function pollersOf({ connection, fleet }: FleetConnection): Promise<Map<string, number>> {
  const { namespace, taskQueue } = fleet;
  const { pollers } = await connection.withDeadline(Date.now() + fleetMessages.time.call, () =>
    connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: activityQueue,
    }),
  );
  return new Map(
    (pollers ?? []).map(({ identity, lastAccessTime: at }) => {
      return [identity ?? '', Number(at?.seconds ?? 0) * 1000 + Number(at?.nanos ?? 0) / 1e6];
    }),
  );
}

/** What a worker offers. A damaged note counts as none. */
async function profileOf(name: string, storage: FleetStorage): Promise<WorkerProfile | undefined> {
  try {
    return WorkerProfile.safeParse(await storage.note('workers', name)).data;
  } catch (error) {
    if (error instanceof OffsiteError && error.code === 'FLEET_CONTENT_DAMAGED') return undefined;
    throw error;
  }
}
