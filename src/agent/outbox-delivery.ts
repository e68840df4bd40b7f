import { type BackoffLimits, backoff } from '../backoff.ts';
import { Forbidden, Unauthorized } from '../client/refusal.ts';
import type { Clock } from '../clock.ts';
import type { Outbox, PendingReport } from '../ledger/outbox.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';

/** Milliseconds until an undelivered report is due again. A client has already retried its call by then. */
const waits: BackoffLimits = { first: 5_000, longest: 5 * 60_000 };

export type Delivered =
  | { kind: 'delivered' }
  /** The report is still in the outbox: `queued` is sent again later, `parked` waits for a person. */
  | { kind: 'kept'; state: 'queued' | 'parked'; answer: string };

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

  /** Sends one result. Rejects if the receiver does not have it afterwards. */
  protected abstract send(report: PendingReport, signal: AbortSignal): Promise<void>;

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
    try {
      await this.send(report, signal);
    } catch (error) {
      signal.throwIfAborted();
      return this.#keep(report, error);
    }
    this.#failures = 0;
    this.#parts.outbox.delivered(report.trial);
    return { kind: 'delivered' };
  }

  #keep(report: PendingReport, error: unknown): Delivered {
    const { outbox, clock, random = Math.random } = this.#parts;
    const answer = messageOf(error);
    if (isFinal(error)) {
      this.#failures = 0;
      outbox.parked(report.trial, answer);
      return { kind: 'kept', state: 'parked', answer };
    }
    this.#failures++;
    this.#pausedUntil = clock.now() + backoff(this.#failures, waits, random);
    outbox.deferred(report.trial, answer, this.#pausedUntil);
    return { kind: 'kept', state: 'queued', answer };
  }
}

/**
 * Whether a retry cannot help: the receiver understood and refused the report, the client refuses to send it,
 * or our disk has lost it. A refused key, or one that lacks a permission, is not final, because the user can
 * replace the key.
 */
function isFinal(error: unknown): boolean {
  if (!(error instanceof OffsiteError) || error instanceof Unauthorized || error instanceof Forbidden)
    return false;
  return error.kind === 'input' || error.code === 'BLOB_DAMAGED' || error.code === 'BLOB_MISSING';
}
