import { ApplicationFailure, activityInfo, CompleteAsyncError } from '@temporalio/activity';
import { z } from 'zod';
import { NotClaimed } from '../../agent/not-claimed.ts';
import type { Worker } from '../../agent/worker/worker.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import type { Clock } from '../../clock.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { TrialDocument } from '../document.ts';
import { placedTrials } from '../placement/placed-trials.ts';
import type { FleetStorage } from '../storage/storage.ts';
import type { FleetActivities, TrialOrder, TrialSummary } from '../workflow/messages.ts';
import type { Documents } from './documents.ts';
import { enterFoundTrial } from './enter-found-trial.ts';
import { enterTrial, type GivenTask } from './enter-trial.ts';
import { storeRecord } from './store-record.ts';
import { TaskHold } from './task-hold.ts';
import type { Tasks } from './tasks.ts';

export interface TaskRunnerParts {
  ledger: Ledger;
  storage: FleetStorage;
  documents: Documents;
  tasks: Tasks;
  clock: Clock;
  monotonic: () => number;
  /** How other machines know this worker. */
  name: string;
  /** The service's name in the ledger. */
  service: string;
  /** Finds runs that somebody else queued. */
  look: FleetActivities['offsiteLook'];
  worker: Pick<Worker, 'leave' | 'waiting' | 'running'>;
  /** Called when the queue or the outbox may have something new. */
  wake(): void;
}

const Order = z.object({
  batch: z.string().max(fleetStorage.bytes.name),
  document: z.string().regex(/^[0-9a-f]{64}$/),
  run: z.string().max(fleetStorage.bytes.name),
  ordinal: z.int().nonnegative(),
});

/** How a task ended here. */
type TaskEnd =
  /** Temporal has its result, or does not want to hear of it any more. */
  | { kind: 'told' }
  | { kind: 'canceled' }
  /** The result is known without running the trial. */
  | { kind: 'known'; summary: TrialSummary }
  /** This worker cannot run it: another one may, unless it is for good. */
  | { kind: 'declined'; reason: string; forGood: boolean };

interface Pending {
  hold: TaskHold;
  end(how: TaskEnd): void;
  ended: Promise<TaskEnd>;
}

/** Milliseconds until a trial that a worker declined is offered again. */
const againMs = 10_000;

/**
 * The activities of a worker. A trial's activity puts it into the ledger's queue and waits; the worker of this
 * process runs it, and the delivery of the outbox completes it.
 */
export class TaskRunner {
  readonly #parts: TaskRunnerParts;
  readonly #pending = new Map<TrialKey, Pending>();
  #isDraining = false;

  constructor(parts: TaskRunnerParts) {
    this.#parts = parts;
  }

  readonly activities: FleetActivities = {
    offsiteTrial: (order) => this.#trial(Order.parse(order)),
    offsiteTrialPage: async (order) =>
      placedTrials(await this.#parts.documents.planned(order.document), order),
    offsiteLook: (order) => this.#parts.look(order),
  };

  /** Gives the trials back that have not begun, and those that come from now on. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    const begun = new Set(this.#parts.worker.running().map(({ trial }) => trial.key));
    await Promise.all(
      [...this.#pending.keys()].filter((key) => !begun.has(key)).map((key) => this.#giveBack(key)),
    );
  }

  /** Gives all trials back, those that run too. Takes no others if this worker ends. */
  async giveBack({ isEnding }: { isEnding: boolean }): Promise<void> {
    this.#isDraining ||= isEnding;
    await Promise.all([...this.#pending.keys()].map((key) => this.#giveBack(key)));
  }

  /** Receives what the worker does. */
  observe(event: WorkEvent): void {
    if (!('trial' in event)) return;
    const pending = this.#pending.get(event.trial.key);
    if (!pending) return;
    switch (event.kind) {
      case 'phase':
        pending.hold.phase(event.phase);
        return;
      case 'finished':
        pending.hold.phase('reporting');
        this.#parts.wake();
        return;
      case 'not-claimed':
        if (event.why === 'ended' && !pending.hold.lost.aborted) {
          const summary = { verdict: 'elsewhere', ms: 0, worker: this.#parts.name } as const;
          pending.end({ kind: 'known', summary });
        }
        return;
      case 'not-ready': {
        const { kind, reason } = event.why;
        void this.#decline(event.trial.key, event.trial.runId, reason, kind === 'parked');
      }
    }
  }

  /** Ends the task of a trial that Temporal accepted, or refused for good. */
  told(trial: TrialKey): void {
    this.#pending.get(trial)?.end({ kind: 'told' });
  }

  async #trial(order: TrialOrder): Promise<TrialSummary> {
    const { tasks, clock, monotonic } = this.#parts;
    const { taskToken: token, heartbeatTimeoutMs: heartbeatMs = 60_000, workflowExecution } = activityInfo();
    if (this.#isDraining) throw declined('this worker ends', false, 0);
    const beat = (phase: string, withinMs: number) => tasks.beat(token, phase, withinMs);
    const ended = await this.#held(
      order,
      { beat, heartbeatMs, clock, monotonic },
      {
        token,
        workflow: workflowExecution?.workflowId ?? '',
        workflowRun: workflowExecution?.runId ?? '',
      },
    );
    switch (ended.kind) {
      case 'known':
        return ended.summary;
      case 'declined':
        throw declined(ended.reason, ended.forGood, this.#isDraining ? 0 : againMs);
      case 'canceled':
        await tasks.canceled(token);
        throw new CompleteAsyncError();
      case 'told':
        // The SDK must not answer for a task that the outbox completes.
        throw new CompleteAsyncError();
    }
  }

  async #held(
    order: TrialOrder,
    holdParts: Parameters<typeof TaskHold.take>[0],
    task: GivenTask,
  ): Promise<TaskEnd> {
    try {
      using hold = await TaskHold.take(holdParts);
      return await this.#run(order, hold, task);
    } catch (error) {
      if (error instanceof NotClaimed) return { kind: 'told' };
      if (error instanceof OffsiteError)
        return { kind: 'declined', reason: error.message, forGood: error.kind === 'input' };
      throw error;
    }
  }

  async #run(order: TrialOrder, hold: TaskHold, task: GivenTask): Promise<TaskEnd> {
    const { ledger, documents, wake } = this.#parts;
    const document = await documents.get(order.document);
    if (document.service !== this.#parts.service) throw otherService(document.service, this.#parts.service);
    const { key, state, report } = await this.#enter(order, document, task);
    hold.lost.throwIfAborted();
    if (state === 'finished' && report !== 'queued') {
      // It was completed and reported before, and Temporal has lost that.
      return { kind: 'known', summary: await storeRecord(key, { ...this.#parts, worker: this.#parts.name }) };
    }
    const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<TaskEnd>();
    // Another task for the trial may wait for this one, which tells how it failed.
    ended.catch(() => undefined);
    const pending = { hold, end, ended };
    this.#pending.set(key, pending);
    const lose = async () => {
      // Whatever the ledger can note, the sandbox ends.
      const left = this.#parts.worker.leave(key, hold.lost.reason as NotClaimed);
      if (hold.isCanceled && ledger.fleetTasks.isOpen(key)) ledger.queue.withdraw([key], 'canceled');
      await left;
    };
    const ending = () => end({ kind: hold.isCanceled ? 'canceled' : 'told' });
    hold.lost.addEventListener('abort', () => void lose().then(ending, fail));
    wake();
    try {
      return await ended;
    } finally {
      if (this.#pending.get(key) === pending) this.#pending.delete(key);
    }
  }

  /** Enters a trial when an earlier task for it has ended here. */
  async #enter(order: TrialOrder, document: TrialDocument, task: GivenTask) {
    const { ledger, documents } = this.#parts;
    const planned = document.kind === 'found' ? await documents.plannedFor(document) : undefined;
    for (;;) {
      const known = ledger.fleetTasks.find(document.service, order);
      const earlier = known === undefined ? undefined : this.#pending.get(known);
      if (!earlier) {
        return document.kind === 'found'
          ? enterFoundTrial(order, { ...document, planned }, task, ledger)
          : enterTrial(order, document, task, ledger);
      }
      await earlier.ended.catch(() => undefined);
    }
  }

  async #decline(key: TrialKey, runId: string, reason: string, forGood: boolean): Promise<void> {
    const { worker } = this.#parts;
    await worker.leave(key, new NotClaimed({ kind: 'ended' }, reason, undefined));
    worker.waiting.forget(runId);
    this.#pending.get(key)?.end({ kind: 'declined', reason, forGood });
  }

  async #giveBack(key: TrialKey): Promise<void> {
    if (!this.#parts.ledger.fleetTasks.isOpen(key)) return;
    const reason = this.#isDraining ? 'this worker ends' : 'this worker must not ask its model now';
    const pending = this.#pending.get(key);
    await this.#parts.worker.leave(key, new NotClaimed({ kind: 'ended' }, reason, undefined));
    pending?.end({ kind: 'declined', reason, forGood: false });
  }
}

function declined(message: string, nonRetryable: boolean, nextRetryDelay: number): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: 'Declined',
    nonRetryable,
    ...(nextRetryDelay > 0 && { nextRetryDelay }),
  });
}

function otherService(theirs: string, own: string): OffsiteError {
  return new OffsiteError(`the batch belongs to the service ${theirs}, and this worker to ${own}`, {
    code: 'FLEET_OTHER_SERVICE',
    kind: 'infrastructure',
    hint: 'All machines of a fleet need the same service in offsite.yaml.',
  });
}
