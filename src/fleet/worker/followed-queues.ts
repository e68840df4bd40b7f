import type { Logger } from 'pino';
import { z } from 'zod';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { FleetConnection } from '../connect.ts';
import { fleetFormat, otherFormat } from '../format.ts';
import { canRun, Needs, queueFor } from '../placement/needs.ts';
import type { WorkerProfile } from '../placement/worker-profile.ts';
import { pollersOf, presenceMs, showPresence } from '../seen-workers.ts';
import { batchWorkflow, foundTrialWorkflow } from '../workflow/messages.ts';
import type { Polls } from './polls.ts';

export interface FollowedQueuesParts {
  connection: FleetConnection;
  /** How other machines know this worker. */
  name: string;
  profile: WorkerProfile;
  polls: Pick<Polls, 'queues' | 'follow' | 'leave'>;
  monotonic: () => number;
  log: Logger;
}

/** The memo of a workflow with trials, which all workers read. */
const Memo = z.object({
  pool: z.string(),
  needs: z.array(Needs).max(fleetMessages.count.needs),
});

/** Milliseconds for which a queue is polled after its last trial: the next batch may have the same needs. */
const keptMs = 60_000;

/**
 * Finds out which needs the trials in progress have, and polls the queues of those that this worker can run.
 */
export class FollowedQueues {
  readonly #parts: FollowedQueuesParts;
  /** When each queue was needed last. */
  readonly #needed = new Map<string, number>();
  readonly #reported = new Set<string>();

  constructor(parts: FollowedQueuesParts) {
    this.#parts = parts;
  }

  /** Resolves with the milliseconds until the next look. */
  async look(): Promise<number> {
    const { connection, polls, monotonic, name } = this.#parts;
    const wanted = await this.#wanted();
    const now = monotonic();
    for (const queue of wanted) this.#needed.set(queue, now);
    await polls.follow(wanted);
    for (const queue of polls.queues) {
      if (now - (this.#needed.get(queue) ?? 0) > keptMs) polls.leave(queue);
    }
    // The server answers this call only after some seconds.
    await showPresence(connection, name);
    return Math.max(0, presenceMs((await pollersOf(connection)).size) - fleetMessages.time.presence);
  }

  async #wanted(): Promise<string[]> {
    const queues = new Set<string>();
    // Each type on its own, so that many found trials cannot hide a batch.
    for (const type of [batchWorkflow, foundTrialWorkflow])
      for await (const queue of this.#queuesOf(type)) queues.add(queue);
    const most = fleetMessages.count.queues;
    if (queues.size > most)
      this.#warnOnce(`trials have ${queues.size} different needs; it polls for ${most} of them`);
    return [...queues].slice(0, most);
  }

  /** The queues of the trials of all workflows of a type that this worker can run. */
  async *#queuesOf(type: string): AsyncGenerator<string> {
    const { connection, profile } = this.#parts;
    const { client, fleet } = connection;
    const query = `WorkflowType = '${type}' AND ExecutionStatus = 'Running'`;
    let count = 0;
    for await (const { workflowId, taskQueue, memo } of client.workflow.list({ query })) {
      if (count++ >= fleetMessages.count.listed) return;
      const format = formatOf(taskQueue, fleet.taskQueue);
      if (format === undefined) continue;
      if (format !== fleetFormat) {
        this.#refuse(workflowId, format);
        continue;
      }
      const read = Memo.safeParse(memo);
      if (!read.success || !profile.pools.includes(read.data.pool)) continue;
      for (const needs of read.data.needs)
        if (canRun(profile, needs)) yield queueFor(fleet.taskQueue, read.data.pool, needs);
    }
  }

  #refuse(workflow: string, format: string): void {
    if (this.#reported.has(format)) return;
    this.#reported.add(format);
    const reason = otherFormat(format);
    this.#parts.log.error(
      { batch: workflow, reason },
      'refused a batch; all machines of a fleet need the same version of Offsite',
    );
  }

  #warnOnce(message: string): void {
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    this.#parts.log.warn(message);
  }
}

/** The format in the name of a workflow's queue; undefined for the workflows of other fleets. */
export function formatOf(queue: string, taskQueue: string): string | undefined {
  if (queue === taskQueue) return '1';
  const format = queue.startsWith(`${taskQueue}/`) ? queue.slice(taskQueue.length + 1) : '';
  return /^[\d.]{1,20}$/.test(format) ? format : undefined;
}
