import type { Clock } from '../clock.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Delivered, Delivery } from './delivery.ts';

/** Reports on their way at a time, to a service that works. One that failed last is asked with one. */
const atATime = 4;

/** Milliseconds until the outbox is looked at again when nothing woke the loop: another process may have put something there. */
const idleMs = 60_000;

/** Milliseconds until it goes on after the ledger itself failed, as on a full disk. */
const ledgerPauseMs = 5_000;

export interface DeliveryLoopParts {
  ledger: Ledger;
  delivery: Delivery;
  clock: Clock;
  /** The service's name in the ledger. */
  service: string;
  /** Only the reports of one batch. */
  batch?: BatchKey | undefined;
  observe(report: PendingReport, delivered: Delivered): void;
  /** For what the user should know meanwhile. */
  note(message: string): void;
}

/** What ends the wait for the outbox to be empty. */
export interface Grace {
  /** Milliseconds. */
  ms: number;
  /** Deliveries in a row that fail. */
  failures: number;
}

/**
 * Delivers what is in the outbox for one service, in the background of everything else, until it is disposed of. A service that does
 * not take a report is left alone for a while that grows, and then asked again, for as long as it takes.
 */
export class DeliveryLoop implements AsyncDisposable {
  readonly #parts: DeliveryLoopParts;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>;
  #woken = Promise.withResolvers<void>();
  /** Resolved and made anew whenever a round is over. */
  #round = Promise.withResolvers<void>();

  constructor(parts: DeliveryLoopParts) {
    this.#parts = parts;
    this.#running = this.#run(this.#ending.signal);
    // Whoever waits for the outbox, or disposes of the loop, gets it.
    this.#running.catch(() => undefined);
  }

  /** There is something new in the outbox. */
  wake(): void {
    this.#woken.resolve();
  }

  /**
   * Waits until the outbox holds nothing for this loop, but no longer than the grace. Returns how many reports are left. Rejects where
   * the signal aborts.
   */
  async drain(grace: Grace, signal: AbortSignal): Promise<number> {
    const { delivery, clock } = this.#parts;
    const over = new AbortController();
    const ending = AbortSignal.any([over.signal, signal]);
    let late = false;
    const lateness = clock.sleep(grace.ms, ending).then(
      () => {
        late = true;
      },
      () => undefined,
    );
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => undefined);
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    const before = delivery.failures;
    try {
      signal.throwIfAborted();
      this.wake();
      for (;;) {
        const { count } = this.#backlog();
        const failed = delivery.failures - Math.min(before, delivery.failures);
        // It is not asked again before the grace is over: there is nothing to wait for.
        const paused = delivery.pauseMs > grace.ms;
        if (count === 0 || late || paused || failed >= grace.failures) return count;
        await Promise.race([this.#round.promise, lateness, aborted.promise, this.#running]);
      }
    } finally {
      signal.removeEventListener('abort', abort);
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#deliverDue(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof OffsiteError)) throw error;
        // What the service took and the ledger could not note is sent again, which changes nothing there.
        this.#parts.note(`the outbox cannot be kept up to date: ${messageOf(error)}`);
        await this.#sleep(ledgerPauseMs, signal);
      }
    }
  }

  async #deliverDue(signal: AbortSignal): Promise<void> {
    const { ledger, delivery, clock, service, batch, observe } = this.#parts;
    this.#woken = Promise.withResolvers<void>();
    const limit = delivery.failures > 0 ? 1 : atATime;
    const due = ledger.outbox.due({ service, batch, now: clock.now(), limit });
    await Promise.all(due.map(async (report) => observe(report, await delivery.deliver(report, signal))));
    this.#endRound();
    if (delivery.pauseMs > 0) await this.#sleep(delivery.pauseMs, signal);
    else if (due.length === 0) await this.#idle(signal);
  }

  /** Until something new is there, or what was put off is due. */
  async #idle(signal: AbortSignal): Promise<void> {
    const { nextAt = Number.POSITIVE_INFINITY } = this.#backlog();
    const over = new AbortController();
    const untilDue = Math.max(1, nextAt - this.#parts.clock.now());
    const sleeping = this.#sleep(Math.min(idleMs, untilDue), AbortSignal.any([signal, over.signal]));
    await Promise.race([sleeping, this.#woken.promise]);
    over.abort();
    await sleeping;
  }

  #backlog() {
    const { ledger, service, batch } = this.#parts;
    return ledger.outbox.backlog({ service, batch });
  }

  #endRound(): void {
    const { resolve } = this.#round;
    this.#round = Promise.withResolvers<void>();
    resolve();
  }

  /** Ends early, and well, where the signal aborts. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#parts.clock.sleep(ms, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
