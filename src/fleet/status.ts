import type { Clock } from '../clock.ts';
import type { BatchHandle } from './batch-handle.ts';
import type { FleetConnection } from './connect.ts';
import { allQueues } from './worker/placement.ts';
import type { BatchProgress } from './workflow/messages.ts';

/** A worker that polled in the last minutes. */
export interface SeenWorker {
  /** `machine/agent/trials at a time` */
  name: string;
  pools: string[];
  /** Milliseconds since the server saw it. */
  silentMs: number;
}

export interface BatchStatus {
  id: string;
  suite: string;
  pool: string;
  /** Trials that workers hold. */
  held: number;
  /** Undefined if no worker answers. */
  progress: BatchProgress | undefined;
}

/** `TASK_QUEUE_TYPE_ACTIVITY` of Temporal's API. */
const activityQueue = 2;

export async function fleetStatus(
  connection: FleetConnection,
  handles: readonly BatchHandle[],
  clock: Clock,
): Promise<{ workers: SeenWorker[]; batches: BatchStatus[] }> {
  const batches = await Promise.all(handles.map(statusOf));
  const pools = new Set([...connection.fleet.pools, ...batches.map(({ pool }) => pool)]);
  const workers = new Map<string, SeenWorker>();
  for (const pool of pools) {
    for (const name of await pollersOf(connection, pool)) {
      const silentMs = Math.max(0, clock.now() - name.at);
      const known = workers.get(name.identity) ?? { name: name.identity, pools: [], silentMs };
      known.silentMs = Math.min(known.silentMs, silentMs);
      if (!known.pools.includes(pool)) known.pools.push(pool);
      workers.set(name.identity, known);
    }
  }
  return { workers: [...workers.values()], batches };
}

async function statusOf(handle: BatchHandle): Promise<BatchStatus> {
  const { memo, open } = await handle.standing();
  const progress = await handle.progress().catch(() => undefined);
  return {
    id: handle.id,
    suite: String(memo.suite ?? ''),
    pool: String(memo.pool ?? 'default'),
    held: open.filter(({ phase }) => phase !== undefined).length,
    progress,
  };
}

async function pollersOf({ connection, fleet }: FleetConnection, pool: string) {
  const { namespace, taskQueue } = fleet;
  const asked = allQueues(taskQueue, pool).map(async (name) => {
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name },
      taskQueueType: activityQueue,
    });
    return (pollers ?? []).map(({ identity, lastAccessTime }) => {
      return { identity: identity ?? '', at: Number(lastAccessTime?.seconds ?? 0) * 1000 };
    });
  });
  return (await Promise.all(asked)).flat();
}
