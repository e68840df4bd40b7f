import { NotClaimed } from '../../agent/lease.ts';
import { pause } from '../../base/abortable.ts';
import type { Clock } from '../../base/clock.ts';

/**
 * What the server says to a heartbeat. `canceled`: the batch was canceled. `refused`: the task is not this
 * worker's any more.
 */
export type BeatAnswer = 'held' | 'canceled' | 'refused';

export interface TaskHoldParts {
  /** Sends a heartbeat. Rejects if the server does not answer within the given milliseconds. */
  beat(phase: string, withinMs: number): Promise<BeatAnswer>;
  /** Milliseconds without a heartbeat until the server gives the task to another worker. */
  heartbeatMs: number;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
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
  #heldSince: { monotonic: number; clock: number };
  #isCanceled = false;
  #wake: () => void = () => undefined;

  private constructor(parts: TaskHoldParts) {
    this.#parts = parts;
    this.#heldSince = this.#now();
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
      const sentAt = this.#now();
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
      const now = this.#now();
      const silentMs = Math.max(now.monotonic - this.#heldSince.monotonic, now.clock - this.#heldSince.clock);
      if (silentMs < heartbeatMs * ownPart) continue;
      this.#lose(`the server accepted no heartbeat for ${Math.round(silentMs / 1000)} s`, 'refused');
    }
  }

  #lose(why: string, answer: BeatAnswer): void {
    if (this.#isOver) return;
    this.#isCanceled = answer === 'canceled';
    this.#lost.abort(notHeld(why));
  }

  #now() {
    return { monotonic: this.#parts.monotonic(), clock: this.#parts.clock.now() };
  }
}

function notHeld(why: string, cause?: unknown): NotClaimed {
  return new NotClaimed({ kind: 'ended' }, `the fleet took the trial back: ${why}`, cause);
}
