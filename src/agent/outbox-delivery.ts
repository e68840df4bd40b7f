import { type BackoffLimits, backoff } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import type { Outbox, PendingReport } from '../ledger/outbox.ts';

/** Milliseconds until an undelivered report is due again. A client has already retried its call by then. */
const waits: BackoffLimits = { first: 5_000, longest: 5 * 60_000 };

export type Delivered =
  /** The receiver has it. `note` says more, if it is not the usual way. */
  | { kind: 'delivered'; note?: string }
  /** The receiver has another result of the trial. */
  | { kind: 'superseded'; answer: string }
  /** The report is still in the outbox: `queued` is sent again later, `parked` needs a change first. */
  | { kind: 'kept'; state: 'queued' | 'parked'; answer: string };

/** What sending a report led to. `afterMs`: only this report waits, because the receiver works. */
export type Sent =
  | Exclude<Delivered, { kind: 'kept' }>
  | { kind: 'parked'; answer: string }
  | { kind: 'waits'; answer: string; afterMs: number };

export interface OutboxDeliveryParts {
  outbox: Outbox;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits. */
  random?: () => number;
}

/** Delivers results of finished trials from the ledger's outbox to one receiver. */
export abstract class OutboxDelivery {
  readonly #parts: OutboxDeliveryParts;
  /** Deliveries in a row that failed and can still succeed. */
  #failures = 0;
  /** Epoch milliseconds, by the clock of `parts`. */
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: OutboxDeliveryParts) {
    this.#parts = parts;
  }

  /** Sends one result. Rejects if that failed for a reason that can pass: it is sent again later then. */
  protected abstract send(report: PendingReport, signal: AbortSignal): Promise<Sent>;

  /**
   * Deliveries in a row that failed although the reports are good: the receiver is down, or it refuses the
   * key.
   */
  get failures(): number {
    return this.#failures;
  }

  /**
   * Milliseconds to wait before the next delivery; 0 if the receiver works. Never more than the longest wait,
   * even if the clock is set back.
   */
  get pauseMs(): number {
    const left = this.#pausedUntil - this.#parts.clock.now();
    return this.#failures === 0 ? 0 : Math.min(waits.longest, Math.max(0, left));
  }

  /** Delivers one report. Rejects only if the signal aborts; the report is still queued then. */
  async deliver(report: PendingReport, signal: AbortSignal): Promise<Delivered> {
    const { outbox, clock, random = Math.random } = this.#parts;
    const { trial } = report;
    try {
      const sent = await this.send(report, signal);
      this.#failures = 0;
      if (sent.kind === 'delivered') outbox.delivered(trial);
      if (sent.kind === 'superseded') outbox.superseded(trial, sent.answer);
      if (sent.kind === 'delivered' || sent.kind === 'superseded') return sent;
      const { kind, answer } = sent;
      if (kind === 'parked') outbox.parked(trial, answer, versionOf());
      else outbox.deferred(trial, answer, clock.now() + sent.afterMs);
      return { kind: 'kept', state: kind === 'parked' ? 'parked' : 'queued', answer };
    } catch (error) {
      signal.throwIfAborted();
      const answer = messageOf(error);
      if (isLost(error)) {
        outbox.parked(trial, answer, versionOf());
        return { kind: 'kept', state: 'parked', answer };
      }
      this.#failures++;
      this.#pausedUntil = clock.now() + backoff(this.#failures, waits, random);
      outbox.deferred(trial, answer, this.#pausedUntil);
      return { kind: 'kept', state: 'queued', answer };
    }
  }
}

/** Whether our own disk has lost the report. */
function isLost(error: unknown): boolean {
  return error instanceof OffsiteError && (error.code === 'BLOB_DAMAGED' || error.code === 'BLOB_MISSING');
}
