import { type BackoffLimits, backoff } from '../backoff.ts';
import { reportedOutput } from '../bounds/sandbox.ts';
import type { Client } from '../client/client.ts';
import { Conflict, DecodeRefusal, Forbidden, NotFound, Unauthorized } from '../client/refusal.ts';
import type { Clock } from '../clock.ts';
import type { Trial } from '../contract/record.ts';
import type { ReportedTrial, TrialEvent } from '../contract/report.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Outbox, PendingReport } from '../ledger/outbox.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { isSameContent } from './same-content.ts';

/**
 * Milliseconds until an undelivered report is due again. The client has already retried the call by then.
 */
const waits: BackoffLimits = { first: 5_000, longest: 5 * 60_000 };

export type Delivered =
  | { kind: 'delivered' }
  /** Another agent has run the trial, so the report has left the outbox. */
  | { kind: 'superseded'; answer: string }
  /** The report is still in the outbox: `queued` is sent again later, `parked` waits for a person. */
  | { kind: 'kept'; state: 'queued' | 'parked'; answer: string };

export interface DeliveryParts {
  client: Client;
  outbox: Outbox;
  clock: Clock;
  warn: (message: string) => void;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits. */
  random?: () => number;
}

/**
 * Delivers reports of finished trials from the ledger's outbox to one service. Where the specification is
 * unclear, it remembers what this service accepts.
 */
export class Delivery {
  readonly #parts: DeliveryParts;
  /** What a report's `id` names: the run, unless this service accepts only the batch. */
  #identifier: 'run' | 'batch' = 'run';
  /** Which events are sent: all, unless this service refuses them. */
  #events: 'all' | 'started' = 'all';

  /** Deliveries in a row that failed and can still succeed. */
  #failures = 0;
  /** Epoch milliseconds, by the clock of `parts`. */
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
  }

  /**
   * Deliveries in a row that failed although the reports are good: the service is down, or it refuses the
   * key.
   */
  get failures(): number {
    return this.#failures;
  }

  /**
   * Milliseconds to wait before the next delivery; 0 if the service works. Never more than the longest wait,
   * even if the clock is set back.
   */
  get pauseMs(): number {
    const left = this.#pausedUntil - this.#parts.clock.now();
    return this.#failures === 0 ? 0 : Math.min(waits.longest, Math.max(0, left));
  }

  /** Delivers one report. Rejects only if the signal aborts; the report is still queued then. */
  async deliver(report: PendingReport, signal: AbortSignal): Promise<Delivered> {
    const { outbox } = this.#parts;
    try {
      await this.#sendOnce(report, outbox.body(report.trial), signal);
    } catch (error) {
      signal.throwIfAborted();
      return this.#keep(report, error);
    }
    this.#failures = 0;
    outbox.delivered(report.trial);
    return { kind: 'delivered' };
  }

  /**
   * Sends a report. If the service answers with a conflict because it already has this result, that counts as
   * sent.
   */
  async #sendOnce(report: PendingReport, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    const identifier = report.origin === 'found' ? 'run' : this.#identifier;
    try {
      await this.#send(report, trial, identifier, signal);
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      const recorded = await this.#recorded(report, signal);
      if (recorded === undefined) throw error;
      if (!isSameContent(recorded, trial)) throw recordedOtherwise(report, error);
      this.#parts.warn(`${nameOf(report)} was already recorded: ${error.message}`);
    }
  }

  async #send(
    report: PendingReport,
    trial: ReportedTrial,
    identifier: 'run' | 'batch',
    signal: AbortSignal,
    { kinds = this.#events, isSecond = false }: { kinds?: 'all' | 'started'; isSecond?: boolean } = {},
  ): Promise<void> {
    const id = identifier === 'run' ? report.runId : report.batchId;
    const events = kinds === 'all' ? trial.events : trial.events.filter(isStarted);
    try {
      const lease = report.lease !== undefined && { attempt: report.lease };
      const request = { id, trial: { ...trial, events }, ...lease };
      await this.#parts.client.call('evals.reportTrial', request, { signal });
      if (report.origin === 'planned') this.#identifier = identifier;
    } catch (error) {
      if (report.lease !== undefined && refusesLease(error)) {
        await this.#send({ ...report, lease: undefined }, trial, identifier, signal, { kinds, isSecond });
      } else if (error instanceof NotFound && report.origin === 'planned' && !isSecond) {
        await this.#sendOtherwise(report, trial, error, identifier, signal);
      } else if (kinds === 'all' && events.length > 1 && refusesEvents(error)) {
        const started = { kinds: 'started', isSecond } as const;
        await this.#send(report, trial, identifier, signal, started).catch((again) => {
          // Then the events were not the reason, and the first answer says more.
          throw again instanceof DecodeRefusal ? error : again;
        });
        if (isPlain(events)) this.#rememberStartedOnly();
      } else {
        throw error;
      }
    }
  }

  /**
   * The specification does not say whether a report's `id` is the run's or the batch's. If the service does
   * not know the one, we send the other. By its batch, a service finds the run by `taskIndex`, so this is only
   * for runs whose index is known: another one would be stored as the result of another variant.
   */
  async #sendOtherwise(
    report: PendingReport,
    trial: ReportedTrial,
    first: NotFound,
    tried: 'run' | 'batch',
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await this.#send(report, trial, tried === 'run' ? 'batch' : 'run', signal, { isSecond: true });
    } catch (error) {
      throw error instanceof NotFound ? first : error;
    }
  }

  #rememberStartedOnly(): void {
    if (this.#events === 'started') return;
    this.#events = 'started';
    this.#parts.warn(
      'this service refuses trajectory events; it gets only the Started event, the ledger keeps the others',
    );
  }

  /**
   * What the service has recorded of the trial, if it has. If it cannot be asked now, the report is retried
   * like after any failure.
   */
  async #recorded(report: PendingReport, signal: AbortSignal): Promise<Trial | undefined> {
    for await (const run of this.#parts.client.runs({ caseId: report.caseId }, { signal })) {
      if (run.id !== report.runId) continue;
      const trial = run.trials?.find(({ ordinal }) => ordinal === report.ordinal);
      return trial && ['queued', 'running'].includes(trial.status) ? undefined : trial;
    }
    return undefined;
  }

  #keep(report: PendingReport, error: unknown): Delivered {
    const { outbox, clock, random = Math.random } = this.#parts;
    const answer = messageOf(error);
    if (report.lease !== undefined && isTaken(error)) {
      this.#failures = 0;
      outbox.superseded(report.trial, answer);
      return { kind: 'superseded', answer };
    }
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

function isStarted(event: TrialEvent): boolean {
  return event._tag === 'Started';
}

/**
 * Whether a refusal of these events says something about the service, and not about what an agent printed:
 * they are few, and in printable ASCII.
 */
function isPlain(events: readonly TrialEvent[]): boolean {
  const written = JSON.stringify(events);
  return (
    written.length <= reportedOutput.bytes.plain && /^[ -~]*$/.test(written) && !/\\[^"\\nt]/.test(written)
  );
}

/** Services name what they cannot read by its path, or only by what contains it. */
function refusesEvents(error: unknown): boolean {
  return (
    error instanceof DecodeRefusal &&
    error.issues.some(({ path }) => path.startsWith('trial.events') || ['', 'trial'].includes(path))
  );
}

/** Whether the service no longer knows leases: an older one may have taken its place. */
function refusesLease(error: unknown): boolean {
  return error instanceof DecodeRefusal && error.issues.some(({ path }) => path === 'attempt');
}

/** Whether the service refused the result of a leased trial because of another agent. */
function isTaken(error: unknown): boolean {
  return error instanceof Conflict || (error instanceof OffsiteError && error.code === recordedOtherwiseCode);
}

const recordedOtherwiseCode = 'REPORT_CONFLICTS';

function recordedOtherwise(report: PendingReport, cause: Conflict): OffsiteError {
  return new OffsiteError(`${nameOf(report)} is recorded with another result: ${cause.message}`, {
    code: recordedOtherwiseCode,
    kind: 'input',
    hint: 'Another agent may have run it too. The ledger keeps this result; `offsite outbox drop` stops reporting it.',
    cause,
  });
}

/**
 * Whether a retry cannot help: the service understood and refused the report, the client refuses to send it,
 * or our disk has lost it. A refused key, or one that lacks a permission, is not final, because the user can
 * replace the key.
 */
function isFinal(error: unknown): boolean {
  if (!(error instanceof OffsiteError) || error instanceof Unauthorized || error instanceof Forbidden)
    return false;
  return error.kind === 'input' || error.code === 'BLOB_DAMAGED' || error.code === 'BLOB_MISSING';
}

function nameOf({ runId, ordinal }: PendingReport): string {
  return `trial ${ordinal} of run ${runId}`;
}

/**
 * Delivers the reports that could not be delivered to this service earlier. Resolves with the number of
 * delivered reports. Rejects only if the signal aborts.
 *
 * @param due epoch milliseconds; reports whose next try is due later are left out, because they failed just
 *   now
 */
export async function deliverLeftovers(
  { ledger, delivery, service }: { ledger: Ledger; delivery: Delivery; service: string },
  signal: AbortSignal,
  note: (message: string) => void,
  due = Number.POSITIVE_INFINITY,
): Promise<number> {
  const queued = ledger.outbox
    .pending()
    .filter((report) => report.service === service && report.state === 'queued' && report.nextAt <= due);
  let delivered = 0;
  for (const report of queued) {
    const outcome = await delivery.deliver(report, signal);
    if (outcome.kind === 'delivered') delivered++;
    // The service does not answer, so the other reports would fail as well.
    else if (outcome.kind === 'kept' && outcome.state === 'queued') break;
  }
  if (delivered > 0) note(`reported ${delivered} of ${queued.length} results that were queued`);
  return delivered;
}
