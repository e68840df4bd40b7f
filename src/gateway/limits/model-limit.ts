import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { Semaphore } from '../../base/semaphore.ts';
import { adaptingLimits } from '../../bounds/model.ts';
import type { LimitEvent } from './limit-law.ts';
import { type Learned, type Turn, termMs } from './shared-limit.ts';

/** Milliseconds between two looks at the demand, and between two turns while requests wait for a permit. */
const lookMs = 50;
const starvingMs = 200;
/** Turns in each {@link termMs} while nothing changes. */
const renewals = 3;

export interface ModelLimitParts {
  clock: Clock;
  /** Reports to the other processes, and learns from them. Never throws. */
  turn(turn: Turn): Learned;
}

/**
 * The permits of this process for requests to one model whose limit adapts. It reports to the other
 * processes of this machine how its requests ended, and gets its part of the limit.
 */
export class ModelLimit implements Disposable {
  /** The most requests in flight, as configured. */
  most: number;
  readonly #parts: ModelLimitParts;
  readonly #holder = randomUUID();
  readonly #permits = new Semaphore(0);
  readonly #ended = new AbortController();
  readonly #listeners = new Set<(limit: number) => void>();
  #events: LimitEvent[] = [];
  #sequence = 0;
  #turnAt = Number.NEGATIVE_INFINITY;
  #sent = 0;
  #others = 0;
  #limit: number | undefined;
  #isLooking = false;

  constructor(most: number, parts: ModelLimitParts) {
    this.most = most;
    this.#parts = parts;
  }

  /** Requests that may be in flight now, over all processes of the machine. */
  get limit(): number {
    if (this.#limit === undefined) this.#turn();
    return this.#limit ?? 1;
  }

  /** Calls the listener when the limit has moved. */
  onMove(listener: (limit: number) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Resolves with a permit when one is free. Rejects with the signal's reason if it aborts first. */
  async acquire(signal: AbortSignal): Promise<Disposable> {
    const acquired = this.#permits.acquire(signal);
    // The other processes may have left some permits unused.
    if (this.#permits.waiting > 0 && this.#permits.limit < this.limit - this.#others) this.#turn();
    if (!this.#isLooking) void this.#look();
    return await acquired;
  }

  /** Counts a request as sent. Returns how many are in flight, over all processes of the machine. */
  send(): number {
    this.#sent += 1;
    return this.#sent + this.#others;
  }

  /** Counts a request as over. */
  over(): void {
    this.#sent -= 1;
  }

  observe(event: LimitEvent): void {
    if (this.#events.length < adaptingLimits.count.events) this.#events.push(event);
    // A refusal counts at once, so that the next request is not refused too.
    if (event.kind === 'refused') this.#turn();
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    if (this.#sequence > 0) this.#turn();
  }

  /** Takes turns while there are requests. Never rejects. */
  async #look(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#ended;
    this.#isLooking = true;
    try {
      while (!signal.aborted) {
        const { held, waiting, limit } = this.#permits;
        const wants = held + waiting;
        const isStarving = waiting > 0 && held >= limit;
        // Other processes may need the permits that this one does not use.
        const isRich = limit > wants;
        const dueMs = isStarving || isRich ? starvingMs : termMs / renewals;
        const sinceMs = Math.abs(clock.now() - this.#turnAt);
        if (this.#events.length > 0 || sinceMs >= dueMs) this.#turn();
        if (wants === 0 && this.#permits.limit === 0 && this.#events.length === 0) return;
        await clock.sleep(lookMs, signal);
      }
    } catch {
      // The clock rejects when this is disposed.
    } finally {
      this.#isLooking = false;
    }
  }

  #turn(): void {
    const { held, waiting } = this.#permits;
    const wants = held + waiting;
    const keep = Math.max(held, Math.min(this.#permits.limit, wants));
    const renewal = { holder: this.#holder, sequence: ++this.#sequence, keep, wants, limit: this.most };
    const events = this.#events;
    this.#events = [];
    this.#turnAt = this.#parts.clock.now();
    const { grant, others, limit } = this.#parts.turn({ renewal, events });
    this.#others = others;
    const hasMoved = limit !== this.#limit;
    this.#limit = limit;
    this.#permits.limit = grant;
    if (hasMoved) for (const listener of this.#listeners) listener(limit);
  }
}
