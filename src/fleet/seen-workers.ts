import { fleetMessages } from '../bounds/fleet.ts';
import type { Clock } from '../clock.ts';
import type { FleetConnection } from './connect.ts';
import { WorkerProfile } from './placement/worker-profile.ts';
import type { FleetStorage } from './storage/storage.ts';

/** A worker that polled in the last minutes. */
export interface SeenWorker {
  /** `machine/agent/trials at a time` */
  name: string;
  /** Milliseconds since the server saw it. A worker that works is seen once a minute. */
  silentMs: number;
  /** Undefined if the storage has none that can be read: an older Offsite wrote none. */
  profile: WorkerProfile | undefined;
}

/** `TASK_QUEUE_TYPE_ACTIVITY` of Temporal's API. */
const activityQueue = 2;

/** Milliseconds after which a silent worker counts as gone. A poll takes up to a minute. */
const goneMs = 90_000;

/** Whether a worker is there and takes trials. */
export function isThere({ silentMs, profile }: SeenWorker): boolean {
  return silentMs < goneMs && profile?.ended !== true;
}

/** The workers of all versions that polled in the last minutes, by name. */
export async function seenWorkers(
  connection: FleetConnection,
  storage: FleetStorage,
  clock: Clock,
): Promise<SeenWorker[]> {
  const seen = await pollersOf(connection);
  const workers = [...seen].slice(0, fleetMessages.count.workers).map(async ([name, at]) => ({
    name,
    silentMs: Math.max(0, clock.now() - at),
    profile: profileIn(await storage.note('workers', name)),
  }));
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

function profileIn(note: unknown): WorkerProfile | undefined {
  return WorkerProfile.safeParse(note).data;
}
