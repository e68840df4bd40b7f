import { type BackoffLimits, backoff, type Clock } from '../base/clock.ts';
import { abortable } from '../base/deadline.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import { foundRuns } from '../bounds/service.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import { plural } from '../text/quantities.ts';
import { Loop, type Watchdog } from './loop.ts';
import { type Delivered, isUnreadable, reconcile, reconcileEarlier } from './reconcile.ts';
import type { Sender, Sent } from './sender.ts';

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
const never = Number.POSITIVE_INFINITY;

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
  observe(report: StoredTrial, delivered: Delivered): void;
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
  #pausedUntil = 0;
  /**
   * When the records are read next, in epoch milliseconds: of what was sent, and of what was delivered
   * earlier. A batch's are read when it drains, since only then all of it was sent.
   */
  #lookAt: number;
  #lookBackAt: number;
  #isDraining = false;
  /** Whether the last reading of the service's records succeeded. */
  isCompared = true;
  /** When what was delivered earlier was compared last, in monotonic milliseconds. */
  comparedAt: number | undefined;
  /** Resolved and replaced at the end of each round. */
  #round = Promise.withResolvers<void>();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    const { clock, watchdog, note, batch, compared } = parts;
    this.#lookAt = batch === undefined ? clock.now() : never;
    this.#lookBackAt = compared ? clock.now() : never;
    this.#loop = new Loop({
      name: 'deliver',
      clock,
      watchdog,
      stepMs: foundRuns.time.step,
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

  /** Call this when the outbox has a new report. */
  wake(): void {
    this.#loop.wake();
  }

  /** Looks at once for results that the service has lost: it may have been restored from a backup. */
  compare(): void {
    if (this.#parts.compared) this.#lookBackAt = this.#parts.clock.now();
    this.wake();
  }

  /** Sends everything that waits at once: the service may answer again. */
  retry(): void {
    const { ledger, service } = this.#parts;
    const queued = ledger.outbox
      .pending()
      .filter((one) => one.report === 'queued' && one.service === service);
    ledger.outbox.hurry(queued.map(({ key }) => key));
    this.#pausedUntil = 0;
    this.wake();
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
    this.#lookAt = now;
    this.wake();
    for (;;) {
      const { count, nextAt } = this.#backlog();
      const failed = this.#failures - Math.min(before, this.#failures);
      const isDone = count === 0 && Math.min(this.#lookAt, this.#lookBackAt) > now;
      const isLater = nextAt > Math.max(now + grace.ms, this.#parts.clock.now());
      if (isDone || failed >= grace.failures || isLater) return count;
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
    // Only `retry` ends a pause earlier. A longer one than there is comes from a clock that was set back.
    const pauseMs = this.#pausedUntil - clock.now();
    if (this.#failures > 0 && pauseMs > 0 && pauseMs <= waits.longest) return pauseMs;
    const limit = this.#failures > 0 ? 1 : atATime;
    const due = ledger.outbox.due({ service, batch, now: clock.now(), limit });
    await Promise.all(due.map((report) => this.#deliver(report, signal)));
    if (due.length === 0) await this.#look(signal);
    const { resolve } = this.#round;
    this.#round = Promise.withResolvers<void>();
    resolve();
    return due.length > 0 ? 0 : Math.min(idleMs, Math.max(1, this.#backlog().nextAt - clock.now()));
  }

  async #deliver(report: StoredTrial, signal: AbortSignal): Promise<void> {
    const { clock, ledger, sender, batch, observe } = this.#parts;
    const {
      state,
      answer,
      afterMs = 0,
    } = await sender.send(report, signal).then(
      (sent) => {
        this.#failures = 0;
        return sent;
      },
      (error) => this.#failed(error, signal),
    );
    const now = clock.now();
    ledger.outbox.become(report.key, state, { answer, nextAt: now + afterMs, version: versionOf() });
    if (state === 'sent' && (this.#isDraining || batch === undefined))
      // A service that refused it may have another result, which counts then.
      this.#lookAt = Math.min(this.#lookAt, this.#isDraining || answer !== undefined ? now : now + lookMs);
    observe(report, { state, answer });
  }

  /** What becomes of a report that could not be sent. */
  #failed(error: unknown, signal: AbortSignal): Sent {
    const { clock, random = Math.random } = this.#parts;
    signal.throwIfAborted();
    const answer = messageOf(error);
    if (isUnreadable(error)) return { state: 'parked', answer };
    const afterMs = backoff(++this.#failures, waits, random);
    this.#pausedUntil = clock.now() + afterMs;
    return { state: 'queued', answer, afterMs };
  }

  /** Reads the service's records of what was sent, and of what was delivered earlier, when it is time to. */
  async #look(signal: AbortSignal): Promise<void> {
    const { ledger, clock, service, batch, note, sender, compared } = this.#parts;
    const now = clock.now();
    if (now < Math.min(this.#lookAt, this.#lookBackAt)) return;
    const parts = sender.client && { ...this.#parts, client: sender.client };
    try {
      if (now >= this.#lookBackAt) {
        if (parts) compared?.(await reconcileEarlier(service, parts, signal));
        this.#lookBackAt = clock.now() + lookAgainMs;
        this.comparedAt = clock.monotonic();
      }
      if (now >= this.#lookAt) {
        const runs = batch === undefined ? ledger.outbox.runs(service, 'sent') : ledger.batches.runs(batch);
        if (parts) await reconcile(runs, parts, signal, { open: false });
        this.#lookAt = clock.now() + lookAgainMs;
      }
      this.isCompared = true;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OffsiteError)) throw error;
      if (this.isCompared) note(`cannot read what the service has: ${messageOf(error)}`);
      this.isCompared = false;
      this.#lookAt = clock.now() + failedMs;
      if (compared) this.#lookBackAt = this.#lookAt;
    }
  }

  /** How many results are not shown yet, and when there is something to do next, in epoch milliseconds. */
  #backlog(): { count: number; nextAt: number } {
    const { ledger, service, batch } = this.#parts;
    const { queued, sent, nextAt = never } = ledger.outbox.standing(service, batch);
    const soonest = Math.min(nextAt, this.#lookAt, this.#lookBackAt);
    return {
      count: queued + sent,
      nextAt: this.#failures > 0 ? Math.max(this.#pausedUntil, soonest) : soonest,
    };
  }
}

/**
 * Delivers the reports that could not be delivered to this service earlier, at once. Resolves with how many
 * results of other batches than the caller's own the service still does not show, refused ones among them.
 * Rejects only if the signal aborts.
 */
export async function deliverLeftovers(
  parts: Pick<DeliveryParts, 'ledger' | 'sender' | 'clock' | 'service'>,
  signal: AbortSignal,
  note: (message: string) => void,
  own: readonly string[] = [],
): Promise<number> {
  const { outbox } = parts.ledger;
  const waiting = () => outbox.pending().filter(({ service }) => service === parts.service);
  const before = waiting();
  if (before.length === 0) return 0;
  const earlier = new Set(before.filter(({ batchId }) => !own.includes(batchId)).map(({ key }) => key));
  outbox.hurry([...earlier]);
  let delivered = 0;
  const observe = ({ runId, ordinal }: StoredTrial, { state, answer = '' }: Delivered) => {
    if (state === 'delivered') delivered++;
    if (state === 'superseded')
      note(`trial ${ordinal} of run ${runId}: its result does not count: ${answer}`);
  };
  await using delivery = new Delivery({ ...parts, observe, note });
  await delivery.drain({ ms: 3_000, failures: 1 }, signal);
  if (delivered > 0) note(`reported ${delivered} of ${before.length} results that were queued`);
  // Other processes may add reports meanwhile.
  const left = waiting().filter(({ key }) => earlier.has(key)).length;
  if (left > 0)
    note(`the service does not show ${plural(left, 'result')} of earlier batches yet: offsite data outbox`);
  return left;
}
