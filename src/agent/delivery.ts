import { OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import { reportedOutput } from '../bounds/sandbox.ts';
import { claimAnswers } from '../bounds/service.ts';
import type { Client } from '../client/client.ts';
import { ClientError, ConnectionFailure } from '../client/errors.ts';
import { Conflict, DecodeRefusal, NotFound, ServiceRefusal } from '../client/refusal.ts';
import type { ReportedTrial, TrialEvent } from '../contract/report.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { OutboxDelivery, type OutboxDeliveryParts, type Sent } from './outbox-delivery.ts';
import {
  type Action,
  actions,
  type ObservedTrial,
  otherResult,
  type Reconciled,
  reconcileDelivered,
  recordsOf,
  trialIn,
} from './reconcile.ts';

export interface DeliveryParts extends Omit<OutboxDeliveryParts, 'outbox'> {
  client: Client;
  ledger: Pick<Ledger, 'outbox' | 'agentId'>;
  warn: (message: string) => void;
}

/** Milliseconds until a report is sent again that the service refused although it has no result. */
const againMs = 60_000;

/**
 * Delivers reports of finished trials from the ledger's outbox to one service. An answer is a hint: where it
 * is no plain success, the service's record decides by the table of `reconcile.ts`. Where the specification
 * is unclear about a request, it remembers what this service accepts.
 */
export class Delivery extends OutboxDelivery {
  readonly #parts: DeliveryParts;
  /** What a report's `id` names: the run, unless this service accepts only the batch. */
  #identifier: 'run' | 'batch' = 'run';
  /** Whether the service was seen to file a report by its batch where it belongs. */
  #filesByBatch = false;
  /** Which events are sent: all, unless this service refuses them. */
  #events: 'all' | 'started' = 'all';

  constructor(parts: DeliveryParts) {
    super({ ...parts, outbox: parts.ledger.outbox });
    this.#parts = parts;
  }

  protected override async send(report: PendingReport, signal: AbortSignal): Promise<Sent> {
    const { outbox } = this.#parts.ledger;
    const trial = outbox.body(report.trial);
    outbox.sending(report.trial);
    try {
      await this.#report(report, trial, signal);
      return { kind: 'delivered' };
    } catch (error) {
      const mayHaveIt = report.sent || mayHaveArrived(error);
      if (!mayHaveIt) outbox.notSent(report.trial);
      if (error instanceof Conflict) return this.#conflict(report, trial, mayHaveIt, error, signal);
      if (isFinal(error)) return { kind: 'parked', answer: refusalOf(report, error) };
      throw error;
    }
  }

  /** The service refused the report because of what it has: its record says what that is. */
  async #conflict(
    report: PendingReport,
    trial: ReportedTrial,
    mayHaveIt: boolean,
    error: Conflict,
    signal: AbortSignal,
  ): Promise<Sent> {
    const { state, listed } = await this.#observe(report, trial, signal);
    const action: Action = actions[mayHaveIt ? 'sent' : 'queued'][state];
    if (action === 'deliver') {
      if (state !== 'bare') return { kind: 'delivered' };
      return { kind: 'delivered', note: 'the service shows no content to compare' };
    }
    if (action === 'supersede') return { kind: 'superseded', answer: otherResult(listed) };
    if (report.lease !== undefined && state === 'open') return this.#claimAgain(report, trial, signal);
    const shown = {
      open: 'it lists the trial without a result',
      absent: 'it does not list the run',
      unclear: `it shows the status ${listed?.status ?? 'of no trial'}`,
    }[state as 'open' | 'absent' | 'unclear'];
    return { kind: 'waits', answer: `${error.message}; ${shown}`, afterMs: againMs };
  }

  /**
   * Another Offsite process got a newer lease, and the service has no result. When that lease has ended
   * without one, the trial is claimed again, and our result is reported with the new lease.
   */
  async #claimAgain(report: PendingReport, trial: ReportedTrial, signal: AbortSignal): Promise<Sent> {
    const { client, ledger } = this.#parts;
    const { runId: id, ordinal } = report;
    const request = { id, ordinal, agent: ledger.agentId, seconds: reportLeaseSeconds };
    let lease: number | undefined;
    try {
      ({ attempt: lease } = await client.call('evals.claimTrial', request, {
        signal,
        deadlineMs: claimAnswers.time.call,
      }));
    } catch (error) {
      if (error instanceof Conflict) {
        const afterMs = Math.min(error.retryAfterMs ?? againMs, claimAnswers.time.held);
        const answer = `another Offsite process has claimed the trial, and the service has no result of it yet: ${error.said}`;
        return { kind: 'waits', answer, afterMs: Math.max(1_000, afterMs) };
      }
      // An older service, without claims, may have taken the place of the one that gave the lease.
      if (!(error instanceof NotFound)) throw error;
    }
    ledger.outbox.leased(report.trial, lease);
    try {
      await this.#report({ ...report, lease }, trial, signal);
      return { kind: 'delivered' };
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      return { kind: 'waits', answer: error.message, afterMs: againMs };
    }
  }

  /** Reports a trial in the form that this service accepts. */
  async #report(report: PendingReport, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    // The place of a found run in its batch is not known, and without it, a batch's id names no run.
    const mayName: readonly ('run' | 'batch')[] =
      report.origin === 'found' ? ['run'] : this.#identifier === 'run' ? ['run', 'batch'] : ['batch', 'run'];
    let first: unknown;
    for (const identifier of mayName) {
      try {
        await this.#reportAs(identifier, report, trial, signal);
        if (report.origin === 'planned') this.#identifier = identifier;
        if (identifier === 'batch') await this.#requireFiled(report, trial, signal);
        return;
      } catch (error) {
        if (!(error instanceof NotFound)) throw error;
        first ??= error;
      }
    }
    throw first;
  }

  /**
   * Given a batch's id, a service finds the run by `taskIndex`. If its order of runs is another one than it
   * told, the result is filed under another variant: looked at once, after the first success.
   */
  async #requireFiled(report: PendingReport, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    if (this.#filesByBatch) return;
    const seen = await this.#observe(report, trial, signal).catch(() => undefined);
    signal.throwIfAborted();
    // It is looked at again after the next report, and at the end of the batch.
    if (seen === undefined) return;
    const { state } = seen;
    if (state === 'open' || state === 'other' || state === 'absent') {
      this.#identifier = 'run';
      throw new OffsiteError(
        `the service accepted ${nameOf(report)} by its batch and its place ${trial.taskIndex} in it, ` +
          'but does not show the result there: it may have filed it under another run',
        {
          code: 'REPORT_MISFILED',
          kind: 'infrastructure',
          hint: 'Look at the runs of the batch at the service (offsite service runs CASE), and tell its owner: `taskIndex` is the position in the `runs` that evals.start returned.',
        },
      );
    }
    this.#filesByBatch = true;
  }

  async #reportAs(
    identifier: 'run' | 'batch',
    report: PendingReport,
    trial: ReportedTrial,
    signal: AbortSignal,
  ): Promise<void> {
    const id = identifier === 'run' ? report.runId : report.batchId;
    let { lease } = report;
    let kinds = this.#events;
    let refusal: unknown;
    for (;;) {
      const events = kinds === 'all' ? trial.events : trial.events.filter(isStarted);
      const leased = lease !== undefined && { attempt: lease };
      try {
        const request = { id, trial: { ...trial, events }, ...leased };
        await this.#parts.client.call('evals.reportTrial', request, { signal });
        if (refusal !== undefined && isPlain(trial.events)) this.#rememberStartedOnly();
        return;
      } catch (error) {
        if (lease !== undefined && refusesLease(error)) lease = undefined;
        else if (kinds === 'all' && events.length > 1 && refusesEvents(error)) {
          kinds = 'started';
          refusal = error;
        } else if (refusal !== undefined && error instanceof DecodeRefusal) throw refusal;
        else throw error;
      }
    }
  }

  #rememberStartedOnly(): void {
    if (this.#events === 'started') return;
    this.#events = 'started';
    this.#parts.warn(
      'this service refuses trajectory events; it gets only the Started event, the ledger keeps the others',
    );
  }

  async #observe(report: PendingReport, trial: ReportedTrial, signal: AbortSignal): Promise<ObservedTrial> {
    const run = { key: report.run, id: report.runId, caseId: report.caseId };
    for await (const [, record] of recordsOf([run], this.#parts.client, signal))
      return trialIn(record, report.ordinal, () => trial);
    return { state: 'absent', listed: undefined };
  }
}

/** Seconds of a lease under which a finished trial is only reported. */
const reportLeaseSeconds = 60;

/** Whether the service may have got a report although the call failed. */
function mayHaveArrived(error: unknown): boolean {
  if (error instanceof ConnectionFailure && !error.sent) return false;
  const wasRefused = error instanceof ServiceRefusal && error.kind === 'input';
  // An earlier attempt of the same call may have got no answer.
  return !wasRefused || (error instanceof ClientError && error.attempts > 1);
}

/**
 * Whether the service refused the report in a way that the specification documents as final. All else may
 * pass: a proxy answers for a service that is being replaced, and a key can be replaced. What the client
 * itself refuses to send is final too.
 */
function isFinal(error: unknown): error is OffsiteError {
  if (!(error instanceof OffsiteError)) return false;
  if (error instanceof DecodeRefusal)
    return error.tag === 'HttpApiDecodeError' && error.status === 400 && error.issues.length > 0;
  if (error instanceof NotFound) return error.tag === 'NotFound' && error.status === 404;
  return error.code === 'REPORT_MISFILED' || (error.kind === 'input' && !isAnswer(error));
}

/** Whether an error is an answer of whoever answers at the service's address. */
function isAnswer(error: OffsiteError): boolean {
  return error instanceof ServiceRefusal || (error instanceof ClientError && 'status' in error);
}

function refusalOf(report: PendingReport, error: OffsiteError): string {
  if (!(error instanceof NotFound) || report.origin === 'planned') return error.message;
  return `${error.message}. It was found at the service, so its place in its batch is not known, and it can be reported by the id of its run only`;
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

/** Services name what they cannot read by its path, or only by what contains it; or the body is too large. */
function refusesEvents(error: unknown): boolean {
  if (error instanceof ServiceRefusal && error.status === 413) return true;
  return (
    error instanceof DecodeRefusal &&
    error.issues.some(({ path }) => path.startsWith('trial.events') || ['', 'trial'].includes(path))
  );
}

/** Whether the service no longer knows leases: an older one may have taken its place. */
function refusesLease(error: unknown): boolean {
  return error instanceof DecodeRefusal && error.issues.some(({ path }) => path === 'attempt');
}

function nameOf({ runId, ordinal }: PendingReport): string {
  return `trial ${ordinal} of run ${runId}`;
}

/** Milliseconds after which a refused report is offered to the service again. */
const refusedMs = 24 * 60 * 60_000;

export interface OutboxParts {
  ledger: Ledger;
  client: Client;
  /** The service's name in the ledger. */
  service: string;
}

/**
 * Finds reports that must be sent although nothing new has ended: the service has lost them, or it refused
 * them a day ago or by its answer to another version of Offsite. Rejects if the service cannot be asked.
 */
export async function queueLost(
  { ledger, client, service }: OutboxParts,
  signal: AbortSignal | undefined,
  note: (message: string) => void,
): Promise<Reconciled> {
  const again = ledger.outbox.offerAgain(service, {
    before: ledger.records.now() - refusedMs,
    version: versionOf(),
  });
  if (again > 0) note(`offers ${again} refused ${again === 1 ? 'result' : 'results'} to the service again`);
  return reconcileDelivered(service, { client, ledger, note }, signal);
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
    const failures = delivery.failures;
    const outcome = await delivery.deliver(report, signal);
    if (outcome.kind === 'delivered') delivered++;
    // The service does not answer, so the other reports would fail as well.
    else if (delivery.failures > failures) break;
  }
  if (delivered > 0) note(`reported ${delivered} of ${queued.length} results that were queued`);
  return delivered;
}
