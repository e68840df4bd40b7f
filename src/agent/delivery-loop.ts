import { abortable } from '../base/abortable.ts';
import type { Clock } from '../base/clock.ts';
import { startDeadline } from '../base/deadline.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { foundRuns } from '../bounds/service.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { Loop, type Watchdog } from './loop.ts';
import type { Delivered, OutboxDelivery } from './outbox-delivery.ts';

/** Reports in flight at a time; one while the service fails. */
const atATime = 4;

/**
 * Milliseconds until the loop reads the outbox again when nothing wakes it: another process may add a report.
 */
const idleMs = 60_000;
/** Milliseconds between two checks, and after one that failed. */
const checkMs = 3_600_000;
const checkAgainMs = 60_000;

export interface DeliveryLoopParts {
  ledger: Ledger;
  delivery: OutboxDelivery;
  clock: Clock;
  /** The service's name in the ledger. */
  service: string;
  /** If set, only the reports of this batch are delivered. */
  batch?: BatchKey | undefined;
  watchdog?: Watchdog | undefined;
  /** Finds reports that must be sent although nothing new has ended: at the start, and every hour. */
  check?: ((signal: AbortSignal) => Promise<void>) | undefined;
  observe(report: PendingReport, delivered: Delivered): void;
  /** Called with messages for the user. */
  note(message: string): void;
}

/** Limits of the wait for an empty outbox. */
export interface Grace {
  /** Milliseconds. */
  ms: number;
  /** Failed deliveries in a row. */
  failures: number;
}

/**
 * Delivers the reports of one service in the background until it is disposed. After each failure in a row it
 * waits longer before it asks the service again. It never gives up.
 */
export class DeliveryLoop implements AsyncDisposable {
  readonly #parts: DeliveryLoopParts;
  readonly #ending = new AbortController();
  readonly #loop: Loop;
  readonly #running: Promise<void>;
  #checkAt = Number.NEGATIVE_INFINITY;
  /** Resolved and replaced at the end of each round. */
  #round = Promise.withResolvers<void>();

  constructor(parts: DeliveryLoopParts) {
    this.#parts = parts;
    const { clock, watchdog, note } = parts;
    this.#loop = new Loop({
      ...{ name: 'deliver', clock, watchdog, stepMs: foundRuns.time.step },
      step: (signal) => this.#deliverDue(signal),
      failed(error) {
        if (!(error instanceof OffsiteError)) throw error;
        // If the service accepted a report and the ledger could not note it, the report is sent again. The
        // service does not change the recorded trial then.
        note(`the outbox cannot be updated: ${messageOf(error)}`);
      },
    });
    this.#running = this.#loop.run(this.#ending.signal);
    // `drain` and dispose reject with this error; here it only must not count as unhandled.
    this.#running.catch(() => undefined);
  }

  /** Call this when the outbox has a new report. */
  wake(): void {
    this.#loop.wake();
  }

  /**
   * Waits until the outbox has no reports for this loop, but no longer than the grace allows. Resolves with
   * the number of reports that are left. Rejects if the signal aborts.
   */
  async drain(grace: Grace, signal?: AbortSignal): Promise<number> {
    const { delivery, clock } = this.#parts;
    signal?.throwIfAborted();
    using deadline = startDeadline(clock, grace.ms);
    const before = delivery.failures;
    this.wake();
    for (;;) {
      const { count } = this.#backlog();
      const failed = delivery.failures - Math.min(before, delivery.failures);
      // The loop does not ask the service again within the grace, so waiting is pointless.
      const paused = delivery.pauseMs > grace.ms;
      const isChecked = this.#parts.check === undefined || this.#checkAt > Number.NEGATIVE_INFINITY;
      if ((count === 0 && isChecked) || deadline.expired() || paused || failed >= grace.failures)
        return count;
      await abortable(Promise.race([this.#round.promise, deadline.reached, this.#running]), signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  /** One round. Resolves with the milliseconds until the next round. */
  async #deliverDue(signal: AbortSignal): Promise<number> {
    const { ledger, delivery, clock, service, batch, observe } = this.#parts;
    await this.#check(signal);
    const limit = delivery.failures > 0 ? 1 : atATime;
    const due = ledger.outbox.due({ service, batch, now: clock.now(), limit });
    await Promise.all(due.map(async (report) => observe(report, await delivery.deliver(report, signal))));
    this.#endRound();
    // The pause is part of the round, so that nothing can wake the loop earlier.
    if (delivery.pauseMs > 0) await clock.sleep(delivery.pauseMs, signal);
    return due.length > 0 ? 0 : this.#idleMs();
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { check, clock, note } = this.#parts;
    if (check === undefined || clock.now() < this.#checkAt) return;
    try {
      await check(signal);
      this.#checkAt = clock.now() + checkMs;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OffsiteError)) throw error;
      this.#checkAt = clock.now() + checkAgainMs;
      note(`cannot compare the reported results with the service: ${messageOf(error)}`);
    }
  }

  /** Milliseconds until the next deferred report is due. */
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
