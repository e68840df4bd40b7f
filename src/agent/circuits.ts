import { type BackoffLimits, backoff, type Clock } from '../base/clock.ts';
import { abortable } from '../base/deadline.ts';
import { infrastructureError, messageOf, type OffsiteError } from '../base/offsite-error.ts';
import { mostParallel } from '../suite/model-config.ts';
import type { TrialSpec } from '../trial/spec.ts';

/** Milliseconds between two tries of what is down. */
const waits: BackoffLimits = { first: 2_000, longest: 60_000 };

export interface CircuitParts {
  /** What the circuit guards, for messages: `the engine`, `the model small`. */
  name: string;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /**
   * Checks cheaply whether the guarded thing works; rejects if it does not. While it is down, it is called
   * again and again. Without a probe, one trial at a time is let through to find out.
   */
  probe?: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  /** Milliseconds that trials wait before they give up with `CIRCUIT_OPEN`. */
  patienceMs: number;
  /** Called when trials begin to wait, and when they continue. */
  observe(event: CircuitEvent): void;
  /** Called whenever trials that wait may go on, or must give up. */
  changed?: (() => void) | undefined;
  /** Aborts when nobody needs to know any more whether the guarded thing works. */
  ended?: AbortSignal | undefined;
}

export type CircuitEvent =
  /** `upToMs`: how long trials wait until the run gives up; absent if they wait without end. */
  { kind: 'waiting'; for: string; reason: string; upToMs?: number } | { kind: 'resumed'; for: string };

/**
 * Lets a trial through. The trial reports what it saw. If it disposes the passage without a report, the next
 * trial is let through.
 */
export interface Passage extends Disposable {
  /** Whether it was let through while the guarded thing is down, to find out whether it works again. */
  readonly isTry: boolean;
  worked(): void;
  /** @param isUnanswered whether nobody answered at all, so that the time of the try was one of waiting */
  failed(reason: string, isUnanswered?: boolean): void;
}

interface Outage {
  reason: string;
  failures: number;
  /** Milliseconds of its waits, and of the tries that nobody answered. */
  waitedMs: number;
  /** Whether a trial tries it now, or soon will. */
  isTried: boolean;
}

/**
 * Makes trials wait for something that is down, instead of letting them fail one after another. Meanwhile one
 * trial, or a probe, tries it again with growing pauses.
 */
export class Circuit {
  readonly #parts: CircuitParts;
  #outage: Outage | undefined;
  /** Resolved and replaced at every change. */
  #change = Promise.withResolvers<void>();

  constructor(parts: CircuitParts) {
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#outage !== undefined;
  }

  /** The error `CIRCUIT_OPEN` if the circuit has been open for too long. */
  get gaveUp(): OffsiteError | undefined {
    const { name, patienceMs } = this.#parts;
    if (!this.#outage || this.#outage.waitedMs < patienceMs) return undefined;
    const { reason } = this.#outage;
    return infrastructureError(
      'CIRCUIT_OPEN',
      `${name} was still down after ${Math.round(patienceMs / 1000)} s: ${reason}`,
      { hint: 'When it works again, `offsite resume` runs the remaining trials. Finished results are kept.' },
    );
  }

  /** Resolves when a trial may go through. Rejects with {@link gaveUp}, and if the signal aborts. */
  async pass(signal: AbortSignal): Promise<Passage> {
    for (;;) {
      signal.throwIfAborted();
      const outage = this.#outage;
      if (!outage) return this.#passage(false, () => undefined);
      // The last try may succeed: nobody gives up while it runs.
      if (this.#parts.probe ? !this.gaveUp : outage.isTried) {
        await abortable(this.#change.promise, signal);
        continue;
      }
      if (this.gaveUp) throw this.gaveUp;
      const release = () => {
        outage.isTried = false;
        this.#changed();
      };
      outage.isTried = true;
      try {
        await this.#pause(outage, signal);
      } catch (error) {
        release();
        throw error;
      }
      return this.#passage(true, release);
    }
  }

  /** Opens the circuit if the probe fails. Resolves with whether the circuit is open. */
  async suspect(reason: string, signal: AbortSignal): Promise<boolean> {
    const { probe } = this.#parts;
    if (this.isOpen || !probe) return this.isOpen;
    try {
      await probe(signal);
    } catch {
      signal.throwIfAborted();
      this.#open(reason);
    }
    return this.isOpen;
  }

  #passage(isTry: boolean, release: () => void): Passage {
    const { clock } = this.#parts;
    const began = clock.monotonic();
    return {
      isTry,
      worked: () => this.#close(),
      failed: (reason, isUnanswered = false) => {
        this.#open(reason);
        if (isTry && isUnanswered && this.#outage) this.#outage.waitedMs += clock.monotonic() - began;
      },
      [Symbol.dispose]: release,
    };
  }

  #open(reason: string): void {
    if (this.#outage) {
      this.#outage.failures++;
      this.#outage.reason = reason;
      return;
    }
    const { name, patienceMs, observe, probe } = this.#parts;
    const outage = { reason, failures: 1, waitedMs: 0, isTried: false };
    this.#outage = outage;
    const upTo = Number.isFinite(patienceMs) ? { upToMs: patienceMs } : {};
    observe({ kind: 'waiting', for: name, reason, ...upTo });
    this.#changed();
    // It rejects only when nobody needs to know any more.
    if (probe) this.#keepProbing(probe, outage).catch(() => undefined);
  }

  async #keepProbing(probe: (signal: AbortSignal) => Promise<unknown>, outage: Outage): Promise<void> {
    const { ended = new AbortController().signal } = this.#parts;
    for (;;) {
      await this.#pause(outage, ended);
      try {
        await probe(ended);
        return this.#close();
      } catch (error) {
        ended.throwIfAborted();
        outage.failures++;
        outage.reason = messageOf(error);
        this.#changed();
      }
    }
  }

  async #pause(outage: Outage, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#parts;
    // We add up waits, because a clock may be set while we wait. The wait is never 0, or probing would be a
    // busy loop.
    const ms = 250 + backoff(outage.failures, waits, random);
    await clock.sleep(ms, signal);
    outage.waitedMs += ms;
  }

  #close(): void {
    if (!this.#outage) return;
    this.#outage = undefined;
    this.#parts.observe({ kind: 'resumed', for: this.#parts.name });
    this.#changed();
  }

  #changed(): void {
    const { resolve } = this.#change;
    this.#change = Promise.withResolvers<void>();
    resolve();
    this.#parts.changed?.();
  }
}

/** Requests that a trial's model takes at a time. */
export function maxParallelOf({ modelConfig }: Pick<TrialSpec, 'modelConfig'>): number | undefined {
  const limit = modelConfig && 'maxParallel' in modelConfig ? modelConfig.maxParallel : undefined;
  return limit === undefined ? undefined : mostParallel(limit);
}
