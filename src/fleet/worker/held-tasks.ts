import { NotClaimed } from '../../agent/lease.ts';
import type { Worker } from '../../agent/worker/worker.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { TrialSummary } from '../workflow/messages.ts';
import type { TaskHold } from './task-hold.ts';

export interface HeldTasksParts {
  ledger: Ledger;
  /** How other machines know this worker. */
  name: string;
  worker: Pick<Worker, 'leave' | 'waiting' | 'running'>;
  /** Called when the queue or the outbox may have something new. */
  wake(): void;
}

/** How a task ended here. */
export type TaskEnd =
  /** Temporal has its result, or no longer accepts one. */
  | { kind: 'settled' }
  | { kind: 'canceled' }
  /** The result is known without running the trial. */
  | { kind: 'known'; summary: TrialSummary }
  /** This worker cannot run it. Another one may, unless `forGood` is true. */
  | { kind: 'declined'; reason: string; forGood: boolean };

interface Held {
  hold: TaskHold;
  /** Whether a sandbox has run for it. */
  hasBegun: boolean;
  /** Whether this worker gave it up itself. If not, and its claim ends, another agent has the trial. */
  isGivenUp: boolean;
  end(how: TaskEnd): void;
  ended: Promise<TaskEnd>;
}

/**
 * The tasks whose trials are in this worker's queue, run, or are being reported; and how each of them ends.
 */
export class HeldTasks {
  readonly #parts: HeldTasksParts;
  readonly #held = new Map<TrialKey, Held>();

  constructor(parts: HeldTasksParts) {
    this.#parts = parts;
  }

  /** Holds a task until it has ended here. Rejects if the ledger cannot note how. */
  async until(key: TrialKey, hold: TaskHold): Promise<TaskEnd> {
    const { ledger, worker, wake } = this.#parts;
    const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<TaskEnd>();
    // Another task for the trial may wait for this one, which reports how it failed.
    ended.catch(() => undefined);
    const held: Held = { hold, hasBegun: false, isGivenUp: false, end, ended };
    this.#held.set(key, held);
    const lose = async () => {
      // The sandbox ends even if the ledger cannot be written.
      const left = worker.leave(key, hold.lost.reason as NotClaimed);
      if (hold.isCanceled && ledger.fleetTasks.isOpen(key)) ledger.queue.withdraw([key], 'canceled');
      await left;
    };
    const ending = () => end({ kind: hold.isCanceled ? 'canceled' : 'settled' });
    hold.lost.addEventListener('abort', () => void lose().then(ending, fail));
    wake();
    try {
      return await ended;
    } finally {
      if (this.#held.get(key) === held) this.#held.delete(key);
    }
  }

  /** The end of the task for a trial, if one is held. Never rejects. */
  endOf(key: TrialKey | undefined): Promise<unknown> | undefined {
    return key === undefined ? undefined : this.#held.get(key)?.ended.catch(() => undefined);
  }

  /** Ends the task of a trial that Temporal accepted, or refused for good. */
  settle(trial: TrialKey): void {
    this.#held.get(trial)?.end({ kind: 'settled' });
  }

  /** Receives what the worker does. */
  observe(event: WorkEvent): void {
    if (!('trial' in event)) return;
    const held = this.#held.get(event.trial.key);
    if (!held) return;
    switch (event.kind) {
      case 'begun':
        held.hasBegun = true;
        return;
      case 'phase':
        held.hold.phase(event.phase);
        return;
      case 'finished':
        held.hold.phase('reporting');
        this.#parts.wake();
        return;
      case 'not-claimed':
        if (event.why === 'ended' && !held.isGivenUp && !held.hold.lost.aborted) {
          const summary = { verdict: 'elsewhere', ms: 0, worker: this.#parts.name } as const;
          held.end({ kind: 'known', summary });
        }
        return;
      case 'not-ready': {
        const { kind, reason } = event.why;
        void this.#decline(event.trial.key, event.trial.runId, reason, kind === 'parked');
      }
    }
  }

  /**
   * Gives trials back to the fleet.
   *
   * @param which `queued`: those that do not run now; `new`: those that never did, so that no sandbox of
   *   theirs can be left
   */
  async giveBack(which: 'all' | 'queued' | 'new', reason: string): Promise<void> {
    const running = new Set(this.#parts.worker.running().map(({ trial }) => trial.key));
    const keys = [...this.#held].flatMap(([key, { hasBegun }]) => {
      const stays = which === 'queued' ? running.has(key) : which === 'new' && hasBegun;
      return stays ? [] : [key];
    });
    await Promise.all(keys.map((key) => this.#giveBack(key, reason)));
  }

  async #giveBack(key: TrialKey, reason: string): Promise<void> {
    if (this.#parts.ledger.fleetTasks.isOpen(key)) await this.#giveUp(key, reason, false);
  }

  async #decline(key: TrialKey, runId: string, reason: string, forGood: boolean): Promise<void> {
    await this.#giveUp(key, reason, forGood);
    this.#parts.worker.waiting.forget(runId);
  }

  async #giveUp(key: TrialKey, reason: string, forGood: boolean): Promise<void> {
    const held = this.#held.get(key);
    if (held) held.isGivenUp = true;
    await this.#parts.worker.leave(key, new NotClaimed({ kind: 'ended' }, reason, undefined));
    held?.end({ kind: 'declined', reason, forGood });
  }
}
