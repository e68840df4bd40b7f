import {
  ActivityCancelledError,
  ActivityNotFoundError,
  ActivityPausedError,
  ActivityResetError,
  type Client,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { NotClaimed } from '../../agent/claims.ts';
import type { Worker } from '../../agent/worker/worker.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import { type Clock, longestSince, type Moment, momentOf } from '../../base/clock.ts';
import { pause } from '../../base/deadline.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { queries, type TrialSummary } from '../workflow/messages.ts';

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
        const { key, runId } = event.trial;
        const { waiting } = this.#parts.worker;
        void this.#giveUp(key, reason, kind === 'parked').then(() => waiting.forget(runId));
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
    await Promise.all(keys.map((key) => this.#giveUp(key, reason, false)));
  }

  /** A trial with a result stays: it is being reported. */
  async #giveUp(key: TrialKey, reason: string, forGood: boolean): Promise<void> {
    const { ledger, worker } = this.#parts;
    if (!ledger.fleetTasks.isOpen(key)) return;
    const held = this.#held.get(key);
    if (held) held.isGivenUp = true;
    await worker.leave(key, new NotClaimed({ kind: 'ended' }, reason, undefined));
    held?.end({ kind: 'declined', reason, forGood });
  }
}

/**
 * What the server says to a heartbeat. `canceled`: the batch was canceled. `refused`: the task is not this
 * worker's any more.
 */
export type BeatAnswer = 'held' | 'canceled' | 'refused';

interface TaskHoldParts {
  /** Sends a heartbeat. Rejects if the server does not answer within the given milliseconds. */
  beat(phase: string, withinMs: number): Promise<BeatAnswer>;
  /** Milliseconds without a heartbeat until the server gives the task to another worker. */
  heartbeatMs: number;
  clock: Clock;
}

/** A worker ends a trial itself after this part of the heartbeat time. */
const ownPart = 3 / 5;
/** Heartbeats in one heartbeat time. */
const beats = 6;
/**
 * Milliseconds between two heartbeats, at least: each is a write of the server, and some phases are short.
 */
const betweenMs = 5_000;
/** The own deadline is checked this often in one heartbeat time, and at least once a second. */
const looks = 60;

/**
 * The right to run a task, kept by heartbeats. The right is lost when the server says so, or when the server
 * has accepted no heartbeat for some time. This time is over before the server may give the task away,
 * because it counts from when a heartbeat was sent, and the server's time counts from when the heartbeat
 * arrived.
 */
export class TaskHold implements Disposable {
  readonly #parts: TaskHoldParts;
  readonly #lost = new AbortController();
  readonly #ended = new AbortController();
  #phase = 'waiting';
  /** When the newest accepted heartbeat was sent, by both clocks. */
  #heldSince: Moment;
  #isCanceled = false;
  #wake: () => void = () => undefined;

  private constructor(parts: TaskHoldParts) {
    this.#parts = parts;
    this.#heldSince = momentOf(parts.clock);
  }

  /** Takes a task with a first heartbeat. Rejects with {@link NotClaimed} if it is not this worker's. */
  static async take(parts: TaskHoldParts): Promise<TaskHold> {
    const hold = new TaskHold(parts);
    const answer = await parts.beat(hold.#phase, parts.heartbeatMs * ownPart).catch((error: unknown) => {
      throw notHeld('the server did not accept its first heartbeat', error);
    });
    if (answer !== 'held') throw notHeld(`its first heartbeat was answered: ${answer}`);
    void hold.#keep();
    void hold.#watch();
    return hold;
  }

  /** Aborts with a {@link NotClaimed} when the task must not run here any more. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether it was lost because the batch was canceled. */
  get isCanceled(): boolean {
    return this.#isCanceled;
  }

  /** Reports to the server which phase the trial is in. */
  phase(name: string): void {
    if (this.#phase === name) return;
    this.#phase = name;
    this.#wake();
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }

  get #isOver(): boolean {
    return this.#ended.signal.aborted || this.lost.aborted;
  }

  /** Never rejects. */
  async #keep(): Promise<void> {
    const { clock, heartbeatMs, beat } = this.#parts;
    const beatMs = heartbeatMs / beats;
    const leastMs = Math.min(betweenMs, beatMs / 2);
    const over = AbortSignal.any([this.#ended.signal, this.lost]);
    for (let sentPhase = this.#phase; !this.#isOver; ) {
      await pause(clock, leastMs, over);
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      if (this.#phase === sentPhase)
        await pause(clock, beatMs - leastMs, AbortSignal.any([woken.signal, over]));
      if (this.#isOver) return;
      const sentAt = momentOf(clock);
      sentPhase = this.#phase;
      try {
        const answer = await beat(sentPhase, beatMs);
        if (answer === 'held') this.#heldSince = sentAt;
        else this.#lose(answer === 'canceled' ? 'the batch was canceled' : 'another worker has it', answer);
      } catch {
        // The watch counts how long that lasts. Without a pause, a server that refuses calls would be
        // flooded.
        await pause(clock, beatMs / 2, this.#ended.signal);
      }
    }
  }

  /** Never rejects. */
  async #watch(): Promise<void> {
    const { clock, heartbeatMs } = this.#parts;
    const lookMs = Math.min(1_000, heartbeatMs / looks);
    for (; !this.#isOver; await pause(clock, lookMs, this.#ended.signal)) {
      const silentMs = longestSince(this.#heldSince, clock);
      if (silentMs < heartbeatMs * ownPart) continue;
      this.#lose(`the server accepted no heartbeat for ${Math.round(silentMs / 1000)} s`, 'refused');
    }
  }

  #lose(why: string, answer: BeatAnswer): void {
    if (this.#isOver) return;
    this.#isCanceled = answer === 'canceled';
    this.#lost.abort(notHeld(why));
  }
}

function notHeld(why: string, cause?: unknown): NotClaimed {
  return new NotClaimed({ kind: 'ended' }, `the fleet took the trial back: ${why}`, cause);
}

/**
 * What a worker reports to the Temporal server about its tasks. The answer of each call says who has the
 * task.
 */
export class Tasks {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Rejects if the server does not answer in time. */
  async beat(token: Uint8Array, phase: string, withinMs: number): Promise<BeatAnswer> {
    try {
      await this.#within(withinMs, () => this.#client.activity.heartbeat(token, { phase }));
      return 'held';
    } catch (error) {
      if (error instanceof ActivityNotFoundError) return 'refused';
      if (error instanceof ActivityCancelledError) return 'canceled';
      // A paused activity is not given to another worker while it runs.
      if (error instanceof ActivityPausedError || error instanceof ActivityResetError) return 'held';
      throw error;
    }
  }

  /** Completes a task. Rejects if it is not known whether the server has the completion. */
  async complete(token: Uint8Array, summary: TrialSummary): Promise<'accepted' | 'refused'> {
    try {
      await this.#within(fleetMessages.time.call, () => this.#client.activity.complete(token, summary));
      return 'accepted';
    } catch (error) {
      if (error instanceof ActivityNotFoundError) return 'refused';
      throw error;
    }
  }

  /** Reports that a canceled task has ended. Never rejects: the server finds out when its heartbeats end. */
  async canceled(token: Uint8Array): Promise<void> {
    await this.#within(fleetMessages.time.call, () => this.#client.activity.reportCancellation(token)).catch(
      () => undefined,
    );
  }

  /**
   * What completed a trial in a run of a batch's workflow; undefined if nothing did, or the run is not known.
   */
  async outcome(
    { workflowId, runId }: { workflowId: string; runId: string },
    trial: string,
  ): Promise<TrialSummary | undefined> {
    try {
      const workflow = this.#client.workflow.getHandle(workflowId, runId);
      const found = await this.#within(fleetMessages.time.call, () =>
        workflow.query<TrialSummary | null, [string]>(queries.outcome, trial),
      );
      return found ?? undefined;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  }

  #within<Answer>(ms: number, call: () => Promise<Answer>): Promise<Answer> {
    return this.#client.withDeadline(Date.now() + ms, call);
  }
}
