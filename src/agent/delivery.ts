import { reportedOutput } from '../bounds/sandbox.ts';
import type { Client } from '../client/client.ts';
import type { ListedRun, ListedTrial } from '../client/pages/run-parts.ts';
import { Conflict, DecodeRefusal, NotFound } from '../client/refusal.ts';
import type { ReportedTrial, TrialEvent } from '../contract/report.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { OffsiteError } from '../offsite-error.ts';
import { OutboxDelivery, type OutboxDeliveryParts } from './outbox-delivery.ts';
import { isSameContent } from './same-content.ts';

export interface DeliveryParts extends OutboxDeliveryParts {
  client: Client;
  warn: (message: string) => void;
}

/**
 * Delivers reports of finished trials from the ledger's outbox to one service. Where the specification is
 * unclear, it remembers what this service accepts.
 */
export class Delivery extends OutboxDelivery {
  readonly #parts: DeliveryParts;
  /** What a report's `id` names: the run, unless this service accepts only the batch. */
  #identifier: 'run' | 'batch' = 'run';
  /** Which events are sent: all, unless this service refuses them. */
  #events: 'all' | 'started' = 'all';

  constructor(parts: DeliveryParts) {
    super(parts);
    this.#parts = parts;
  }

  /**
   * Sends a report. If the service answers with a conflict because it already has this result, that counts as
   * sent.
   */
  protected override async send(report: PendingReport, signal: AbortSignal): Promise<void> {
    const trial = this.#parts.outbox.body(report.trial);
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
   * not know one of them, we send the other. Given a batch's id, a service finds the run by `taskIndex`. So
   * call this only for runs whose index is known: with a wrong index, the result would be stored for another
   * variant.
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
  async #recorded(report: PendingReport, signal: AbortSignal): Promise<ListedTrial | undefined> {
    const results = { parts: 'results', of: ({ id }: ListedRun) => id === report.runId } as const;
    for await (const run of this.#parts.client.runs({ caseId: report.caseId }, { signal, ...results })) {
      if (run.id !== report.runId) continue;
      const trial = run.trials?.find(({ ordinal }) => ordinal === report.ordinal);
      return trial && ['queued', 'running'].includes(trial.status) ? undefined : trial;
    }
    return undefined;
  }

  protected override isSuperseded({ lease }: PendingReport, error: unknown): boolean {
    return lease !== undefined && isTaken(error);
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
  { ledger, delivery, service }: { ledger: Ledger; delivery: OutboxDelivery; service: string },
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
