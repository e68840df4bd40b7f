import { abortable } from '../base/abortable.ts';
import { type BackoffLimits, backoff } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import { foundRuns } from '../bounds/service.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { plural } from '../text/quantities.ts';
import { Loop, type Watchdog } from './loop.ts';
import { type Delivered, isUnreadable, reconcile, reconcileEarlier } from './reconcile.ts';
import type { Sender } from './sender.ts';

/** Reports in flight at a time; one while the service fails. */
const atATime = 4;

/** Milliseconds until an undelivered report is due again. A client has already retried its call by then. */
const waits: BackoffLimits = { first: 5_000, longest: 5 * 60_000 };
/**
 * Milliseconds until the loop reads the outbox again when nothing wakes it: another process may add a report.
 */
const idleMs = 60_000;
/** Milliseconds from the first report that was sent until the service's records are read. */
const lookMs = 15_000;
/** Milliseconds until the records are read again, and after a failure. */
const lookAgainMs = 3_600_000;
const failedMs = 2 * 60_000;

export interface DeliveryParts {
  ledger: Ledger;
  sender: Sender;
  clock: Clock;
  /** The service's name in the ledger. */
  service: string;
  /** If set, only the reports of this batch are delivered. */
  batch?: BatchKey | undefined;
  watchdog?: Watchdog | undefined;
  /**
   * If set, results that the service has lost are found too: at the start, and every hour. Receives how many
   * trials must run again.
   */
  compared?: ((again: number) => void) | undefined;
  observe(report: PendingReport, delivered: Delivered): void;
  /** Called with messages for the user. */
  note(message: string): void;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits. */
  random?: (() => number) | undefined;
}

/** Limits of the wait for the service to show all results. */
export interface Grace {
  /** Milliseconds: what is due later is not waited for. */
  ms: number;
  /** Failed deliveries in a row. */
  failures: number;
}

/** When a part of the service's records is read next, in epoch milliseconds. */
interface Look {
  at: number;
  isFailing: boolean;
}

/**
 * Delivers the reports of one service in the background until it is disposed: it sends what is due, reads
 * what the service's records show of it, and acts on the difference by the table of `reconcile.ts`. After
 * each failure in a row it waits longer before it asks the service again. It never gives up.
 */
export class Delivery implements AsyncDisposable {
  readonly #parts: DeliveryParts;
  readonly #ending = new AbortController();
  readonly #loop: Loop;
  readonly #running: Promise<void>;
  /**
   * Deliveries in a row that failed although the reports are good: the service is down, or refuses the key.
   */
  #failures = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** Of what was sent. A batch's records are read when it drains, since only then all of it was sent. */
  readonly #sent: Look;
  /** Of what was delivered earlier. */
  readonly #earlier: Look;
  #isDraining = false;
  /** Resolved and replaced at the end of each round. */
  #round = Promise.withResolvers<void>();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    const { clock, watchdog, note, batch, compared } = parts;
    const never = { at: Number.POSITIVE_INFINITY, isFailing: false };
    this.#sent = { ...never, ...(batch === undefined && { at: clock.now() }) };
    this.#earlier = { ...never, ...(compared && { at: clock.now() }) };
    this.#loop = new Loop({
      ...{ name: 'deliver', clock, watchdog, stepMs: foundRuns.time.step },
      step: (signal) => this.#act(signal),
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

  /** Whether the last reads of the service's records succeeded. */
  get isCompared(): boolean {
    return !this.#sent.isFailing && !this.#earlier.isFailing;
  }

  /** Call this when the outbox has a new report. */
  wake(): void {
    this.#loop.wake();
  }

  /**
   * Waits until the service shows all results that this loop delivers, but no longer than the grace allows.
   * Resolves with how many it does not show, without those that it refused. Rejects if the signal aborts.
   */
  async drain(grace: Grace, signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    const now = this.#parts.clock.now();
    const before = this.#failures;
    this.#isDraining = true;
    this.#sent.at = now;
    this.wake();
    for (;;) {
      const { count } = this.#backlog();
      const failed = this.#failures - Math.min(before, this.#failures);
      const isDone = count === 0 && Math.min(this.#sent.at, this.#earlier.at) > now;
      if (isDone || failed >= grace.failures || this.#nextAt() > now + grace.ms) return count;
      await abortable(Promise.race([this.#round.promise, this.#running]), signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  /** One round: does what is due. Resolves with the milliseconds until the next round. */
  async #act(signal: AbortSignal): Promise<number> {
    const { ledger, clock, service, batch } = this.#parts;
    await this.#look(this.#earlier, () => this.#readEarlier(signal), signal);
    const limit = this.#failures > 0 ? 1 : atATime;
    const due = ledger.outbox.due({ service, batch, now: clock.now(), limit });
    await Promise.all(due.map((report) => this.#deliver(report, signal)));
    if (due.length === 0) await this.#look(this.#sent, () => this.#readSent(signal), signal);
    const { resolve } = this.#round;
    this.#round = Promise.withResolvers<void>();
    resolve();
    // The pause is part of the round, so that nothing can wake the loop earlier.
    const pauseMs = Math.min(waits.longest, this.#pausedUntil - clock.now());
    if (this.#failures > 0 && pauseMs > 0) await clock.sleep(pauseMs, signal);
    return due.length > 0 ? 0 : Math.min(idleMs, Math.max(1, this.#nextAt() - clock.now()));
  }

  async #deliver(report: PendingReport, signal: AbortSignal): Promise<void> {
    const { clock, ledger, sender, observe, random = Math.random } = this.#parts;
    const { outbox } = ledger;
    const { trial } = report;
    const park = (answer: string) => {
      outbox.parked(trial, answer, versionOf());
      observe(report, { kind: 'kept', state: 'parked', answer });
    };
    const defer = (answer: string, at: number) => {
      outbox.deferred(trial, answer, at);
      observe(report, { kind: 'kept', state: 'queued', answer });
    };
    try {
      const sent = await sender.send(report, signal);
      this.#failures = 0;
      if (sent.kind === 'parked') return park(sent.answer);
      if (sent.kind === 'waits') return defer(sent.answer, clock.now() + sent.afterMs);
      if (sent.kind === 'delivered') outbox.delivered(trial);
      if (sent.kind === 'superseded') outbox.superseded(trial, sent.answer);
      if (sent.kind === 'sent') {
        outbox.sent(trial, sent.answer);
        const lookAt = clock.now() + (this.#isDraining ? 0 : lookMs);
        if (this.#isDraining || this.#parts.batch === undefined)
          this.#sent.at = Math.min(this.#sent.at, lookAt);
      }
      observe(report, sent);
    } catch (error) {
      signal.throwIfAborted();
      if (isUnreadable(error)) return park(messageOf(error));
      this.#failures++;
      this.#pausedUntil = clock.now() + backoff(this.#failures, waits, random);
      defer(messageOf(error), this.#pausedUntil);
    }
  }

  async #look(look: Look, read: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, note } = this.#parts;
    if (clock.now() < look.at) return;
    try {
      await read();
      look.at = clock.now() + lookAgainMs;
      look.isFailing = false;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OffsiteError)) throw error;
      look.at = clock.now() + failedMs;
      if (!look.isFailing) note(`cannot read what the service has: ${messageOf(error)}`);
      look.isFailing = true;
    }
  }

  /** Reads what the service has of a batch, or of the reports that were sent. */
  async #readSent(signal: AbortSignal): Promise<void> {
    const { ledger, service, batch, sender } = this.#parts;
    if (!sender.client) return;
    const runs = batch === undefined ? ledger.outbox.unseen(service) : ledger.batches.runs(batch);
    await reconcile(runs, { ...this.#parts, client: sender.client }, signal, { open: false });
  }

  async #readEarlier(signal: AbortSignal): Promise<void> {
    const { service, sender, compared } = this.#parts;
    if (sender.client)
      compared?.(await reconcileEarlier(service, { ...this.#parts, client: sender.client }, signal));
  }

  /** When there is something to do next, in epoch milliseconds. */
  #nextAt(): number {
    const { nextAt = Number.POSITIVE_INFINITY } = this.#backlog();
    const paused = this.#failures > 0 ? this.#pausedUntil : Number.NEGATIVE_INFINITY;
    return Math.max(paused, Math.min(nextAt, this.#sent.at, this.#earlier.at));
  }

  #backlog() {
    const { ledger, service, batch } = this.#parts;
    return ledger.outbox.backlog({ service, batch });
  }
}

/**
 * Delivers the reports that could not be delivered to this service earlier. Resolves with how many results of
 * other batches than the caller's own the service still does not show, refused ones among them. Rejects only
 * if the signal aborts.
 */
export async function deliverLeftovers(
  parts: Pick<DeliveryParts, 'ledger' | 'sender' | 'clock' | 'service'>,
  signal: AbortSignal,
  note: (message: string) => void,
  own: readonly string[] = [],
): Promise<number> {
  const { ledger, service } = parts;
  const waiting = () => ledger.outbox.pending().filter((report) => report.service === service);
  const before = new Set(waiting().map(({ trial }) => trial));
  if (before.size === 0) return 0;
  let delivered = 0;
  const observe = (_: PendingReport, { kind }: Delivered) => {
    if (kind === 'delivered') delivered++;
  };
  await using delivery = new Delivery({ ...parts, observe, note });
  await delivery.drain({ ms: 3_000, failures: 1 }, signal);
  if (delivered > 0) note(`reported ${delivered} of ${before.size} results that were queued`);
  // Other processes may add reports meanwhile.
  const left = waiting().filter(({ trial, batchId }) => before.has(trial) && !own.includes(batchId)).length;
  if (left > 0)
    note(`the service does not show ${plural(left, 'result')} of earlier batches yet: offsite data outbox`);
  return left;
}
