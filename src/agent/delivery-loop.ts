import { foundRuns } from '../bounds/service.ts';
import type { Clock } from '../clock.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Delivered, Delivery } from './delivery.ts';
import { Loop, type Watchdog } from './loop.ts';

/** Reports in flight at a time. A service that failed last gets one. */
const atATime = 4;

/**
 * Milliseconds between two looks at the outbox when nothing wakes the loop: another process may add a report.
 */
const idleMs = 60_000;

export interface DeliveryLoopParts {
  ledger: Ledger;
  delivery: Delivery;
  clock: Clock;
  /** The service's name in the ledger. */
  service: string;
  /** Only the reports of one batch. */
  batch?: BatchKey | undefined;
  watchdog?: Watchdog | undefined;
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
 * Delivers the reports of one service in the background until it is disposed of. After a failure it waits
 * longer and longer before it asks the service again, and never gives up.
 */
export class DeliveryLoop implements AsyncDisposable {
  readonly #parts: DeliveryLoopParts;
  readonly #ending = new AbortController();
  readonly #loop: Loop;
  readonly #running: Promise<void>;
  /** Resolved and made anew whenever a round is over. */
  #round = Promise.withResolvers<void>();

  constructor(parts: DeliveryLoopParts) {
    this.#parts = parts;
    const { clock, watchdog, note } = parts;
    this.#loop = new Loop({
      ...{ name: 'deliver', clock, watchdog, stepMs: foundRuns.time.step },
      step: (signal) => this.#deliverDue(signal),
      failed(error) {
        if (!(error instanceof OffsiteError)) throw error;
        // What the service took and the ledger could not note is sent again, which changes nothing there.
        note(`the outbox cannot be kept up to date: ${messageOf(error)}`);
      },
    });
    this.#running = this.#loop.run(this.#ending.signal);
    // Whoever waits for the outbox, or disposes of the loop, gets it.
    this.#running.catch(() => undefined);
  }

  /** There is something new in the outbox. */
  wake(): void {
    this.#loop.wake();
  }

  /**
   * Waits until the outbox holds nothing for this loop, but no longer than the grace. Returns how many
   * reports are left. Rejects where the signal aborts.
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

  /** One round. Resolves with the milliseconds until the next. */
  async #deliverDue(signal: AbortSignal): Promise<number> {
    const { ledger, delivery, clock, service, batch, observe } = this.#parts;
    const limit = delivery.failures > 0 ? 1 : atATime;
    const due = ledger.outbox.due({ service, batch, now: clock.now(), limit });
    await Promise.all(due.map(async (report) => observe(report, await delivery.deliver(report, signal))));
    this.#endRound();
    // Part of the round, so that nothing wakes the loop earlier.
    if (delivery.pauseMs > 0) await clock.sleep(delivery.pauseMs, signal);
    return due.length > 0 ? 0 : this.#idleMs();
  }

  /** Until a report that was put off is due. */
  #idleMs(): number {
    const { nextAt = Number.POSITIVE_INFINITY } = this.#backlog();
    return Math.min(idleMs, Math.max(1, nextAt - this.#parts.clock.now()));
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
}
