import { once } from 'node:events';
import {
  type ActivitySlotInfo,
  type CustomSlotSupplier,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { runningWorkflows } from '../batch-handle.ts';
import { type FleetConnection, withoutUndefined } from '../connect.ts';
import { fleetFormat, otherFormat, workflowQueue } from '../format.ts';
import { canRun, Needs, queueFor, type WorkerProfile } from '../placement.ts';
import { pollersOf, presenceMs, showPresence } from '../seen-workers.ts';
import { batchWorkflow, type FleetActivities, foundTrialWorkflow } from '../workflow/messages.ts';
import { workflowBundle } from '../workflow-bundle.ts';

export interface PollParts {
  connection: FleetConnection;
  activities: FleetActivities;
  /** Trials that this worker holds at a time. */
  most: number;
  name: string;
}

/** How long Temporal's SDK waits at the end for activities: one may last as long as its trial. */
const graceTime = '7 days';

const oneSlot = { type: 'fixed-size', numSlots: 1 } as const;

/**
 * Polls of task queues: of those that all workers poll, and of those of the trials that this worker can run.
 */
export class Polls {
  readonly #parts: PollParts;
  readonly #native: NativeConnection;
  readonly #slots: Slots;
  readonly #queues = new Map<string, { worker: Worker; slots: QueueSlots }>();
  readonly #running = new Set<Worker>();
  readonly #over = Promise.withResolvers<void>();
  #isEnding = false;

  private constructor(parts: PollParts, native: NativeConnection) {
    this.#parts = parts;
    this.#native = native;
    this.#slots = new Slots(parts.most);
  }

  /** Begins to poll the queues of all workers. Rejects if the server cannot be reached. */
  static async open(parts: PollParts): Promise<Polls> {
    // The command decides what a signal means. The worker's own log has what people need.
    Runtime.install({
      shutdownSignals: [],
      logger: new DefaultLogger('ERROR'),
      telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } },
    });
    const { connection, activities } = parts;
    const { offsiteTrialPage, offsiteLook } = activities;
    const { taskQueue } = connection.fleet;
    const polls = new Polls(parts, await NativeConnection.connect(withoutUndefined(connection.options)));
    await polls.#poll(workflowQueue(taskQueue), {
      workflowBundle: { codePath: await workflowBundle() },
      activities: { offsiteTrialPage, offsiteLook },
    });
    return polls;
  }

  /** The queues of trials that are polled. */
  get queues(): string[] {
    return [...this.#queues.keys()];
  }

  /** Polls these queues of trials too. Rejects if the server cannot be reached. */
  async follow(queues: readonly string[]): Promise<void> {
    const { offsiteTrial } = this.#parts.activities;
    for (const queue of queues) {
      if (this.#isEnding || this.#queues.has(queue)) continue;
      const slots = this.#slots.ofQueue();
      const worker = await this.#poll(queue, {
        activities: { offsiteTrial },
        tuner: {
          activityTaskSlotSupplier: slots.supplier,
          workflowTaskSlotSupplier: oneSlot,
          localActivityTaskSlotSupplier: oneSlot,
          nexusTaskSlotSupplier: oneSlot,
        },
      });
      this.#queues.set(queue, { worker, slots });
    }
  }

  /** Stops polling a queue of trials, unless a task of the queue is held. */
  leave(queue: string): void {
    const one = this.#queues.get(queue);
    if (!one || one.slots.used > 0) return;
    this.#queues.delete(queue);
    shutDown(one.worker);
  }

  /** While held, no poll for a trial begins. */
  hold(isHeld: boolean): void {
    this.#slots.isHeld = isHeld;
  }

  /** Takes no more tasks. */
  end(): void {
    this.#isEnding = true;
    for (const worker of this.#running) shutDown(worker);
  }

  /** Resolves when all tasks have ended, after {@link end}. Rejects if the server refuses a poll for good. */
  async ended(): Promise<void> {
    try {
      await this.#over.promise;
    } finally {
      this.end();
    }
    await this.#native.close();
  }

  async #poll(taskQueue: string, options: Omit<WorkerOptions, 'taskQueue'>): Promise<Worker> {
    const { connection, name } = this.#parts;
    const worker = await Worker.create({
      connection: this.#native,
      namespace: connection.fleet.namespace,
      dataConverter: connection.dataConverter,
      identity: name,
      shutdownGraceTime: graceTime,
      taskQueue,
      ...options,
    });
    this.#running.add(worker);
    const done = () => {
      this.#running.delete(worker);
      if (this.#running.size === 0) this.#over.resolve();
    };
    worker.run().then(done, (error: unknown) => {
      done();
      this.#over.reject(error);
    });
    // `end()` may have been called while this worker was made.
    if (this.#isEnding) shutDown(worker);
    return worker;
  }
}

function shutDown(worker: Worker): void {
  if (worker.getState() === 'RUNNING') worker.shutdown();
}

interface QueueSlots {
  supplier: CustomSlotSupplier<ActivitySlotInfo>;
  /** Tasks of the queue that are held. */
  readonly used: number;
}

/**
 * How many tasks a worker holds at a time, over all queues that it polls. Each queue has one poll in progress
 * while there is room, so a worker may exceed this number by one task for each queue beyond the first.
 */
class Slots {
  readonly #most: number;
  readonly #changed = new EventTarget();
  #used = 0;
  #isHeld = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Lets no poll begin while it is held. Polls in progress may still bring a task each. */
  set isHeld(isHeld: boolean) {
    this.#isHeld = isHeld;
    this.#changed.dispatchEvent(new Event('change'));
  }

  /** The slots as one queue sees them. */
  ofQueue(): QueueSlots {
    let isPolling = false;
    let used = 0;
    const change = (work: () => void) => {
      work();
      this.#changed.dispatchEvent(new Event('change'));
    };
    const supplier: CustomSlotSupplier<ActivitySlotInfo> = {
      type: 'custom',
      reserveSlot: async (_context, signal) => {
        while (isPolling || this.#isHeld || this.#used >= this.#most)
          await once(this.#changed, 'change', { signal });
        isPolling = true;
        return {};
      },
      tryReserveSlot: () => null,
      markSlotUsed: () =>
        change(() => {
          isPolling = false;
          used++;
          this.#used++;
        }),
      releaseSlot: ({ slotInfo }) =>
        change(() => {
          if (!slotInfo) {
            isPolling = false;
            return;
          }
          used--;
          this.#used--;
        }),
    };
    return {
      supplier,
      get used() {
        return used;
      },
    };
  }
}

interface FollowedQueuesParts {
  connection: FleetConnection;
  /** How other machines know this worker. */
  name: string;
  profile: WorkerProfile;
  polls: Pick<Polls, 'queues' | 'follow' | 'leave'>;
  clock: Clock;
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
    const { connection, polls, clock, name } = this.#parts;
    const wanted = await this.#wanted();
    const now = clock.monotonic();
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
    for await (const { workflowId, taskQueue, memo } of runningWorkflows(client, type)) {
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
function formatOf(queue: string, taskQueue: string): string | undefined {
  if (queue === taskQueue) return '1';
  const format = queue.startsWith(`${taskQueue}/`) ? queue.slice(taskQueue.length + 1) : '';
  return /^[\d.]{1,20}$/.test(format) ? format : undefined;
}
