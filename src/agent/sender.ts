import { infrastructureError, OffsiteError } from '../base/offsite-error.ts';
import { Semaphore } from '../base/semaphore.ts';
import { reportedOutput } from '../bounds/sandbox.ts';
import { claimAnswers } from '../bounds/service.ts';
import type { Client } from '../client/client.ts';
import {
  ClientError,
  Conflict,
  ConnectionFailure,
  DecodeRefusal,
  NotFound,
  ServiceRefusal,
} from '../client/refusal.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import { readRecord } from '../record/read-record.ts';
import type { PlatformTrials } from '../service/platform.ts';
import { type Delivered, recordsOf, trialIn } from './reconcile.ts';

/**
 * What sending a report led to. `sent`: the service's record decides what its answer meant. `queued`: only
 * this report waits, for so many milliseconds, because the receiver works.
 */
export interface Sent extends Delivered {
  afterMs?: number;
}

/** Sends results of finished trials to one receiver. */
export interface Sender {
  /** The service whose records show what it has; absent for a receiver in this process. */
  client?: Client;
  /** Sends one result. Rejects if that failed for a reason that can pass. */
  send(report: StoredTrial, signal: AbortSignal): Promise<Sent>;
}

export interface SenderParts {
  client: Client;
  ledger: Pick<Ledger, 'outbox' | 'agentId'>;
  warn: (message: string) => void;
}

/** Seconds of a lease under which a finished trial is only reported. */
const reportLeaseSeconds = 60;

/**
 * Reports trials to one service. Where the specification is unclear about a request, it remembers what this
 * service accepts.
 */
export class ServiceSender implements Sender {
  readonly client: Client;
  readonly #parts: SenderParts;
  /** What a report's `id` names: the run, unless this service accepts only the batch. */
  #identifier: 'run' | 'batch' = 'run';
  /** The runs whose first report named the batch, and was seen to be filed under them. */
  readonly #filed = new Set<string>();
  /** Set once one was filed elsewhere: no other report names the batch then. */
  #misfiled: OffsiteError | undefined;
  /** The first report of a run goes alone, or another one could be filed in its place. */
  readonly #first = new Semaphore(1);
  /** Which events are sent: all, unless this service refuses them. */
  #events: 'all' | 'started' = 'all';

  constructor(parts: SenderParts) {
    this.client = parts.client;
    this.#parts = parts;
  }

  async send(report: StoredTrial, signal: AbortSignal): Promise<Sent> {
    const trial = this.#parts.ledger.outbox.body(report.key);
    try {
      await this.#try(report, trial, signal);
      return { state: 'sent' };
    } catch (error) {
      if (error instanceof Conflict) return await this.#conflict(report, trial, error, signal);
      if (isFinal(error)) return { state: 'parked', answer: refusalOf(report, error) };
      throw error;
    }
  }

  /**
   * The service refused the report because of what it has. If another Offsite process got a newer lease, the
   * trial is claimed again once that lease has ended without a result, and our result is reported with the
   * new lease.
   */
  async #conflict(
    report: StoredTrial,
    trial: ReportedTrial,
    refusal: Conflict,
    signal: AbortSignal,
  ): Promise<Sent> {
    if (report.lease === undefined) return { state: 'sent', answer: refusal.message };
    const { runId: id, ordinal } = report;
    const request = { id, ordinal, agent: this.#parts.ledger.agentId, seconds: reportLeaseSeconds };
    const call = { signal, deadlineMs: claimAnswers.time.call };
    try {
      // An older service, without claims, may have taken the place of the one that gave the lease.
      const claimed = await this.client.call('evals.claimTrial', request, call).catch((error: unknown) => {
        if (error instanceof NotFound) return { attempt: undefined };
        throw error;
      });
      await this.#try({ ...report, lease: claimed.attempt }, trial, signal);
      return { state: 'sent' };
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      // A refusal without the time when the trial may be free says that it has ended.
      if (error.retryAfterMs === undefined) return { state: 'sent', answer: error.message };
      const answer = `another Offsite process has claimed the trial: ${error.said}`;
      const afterMs = Math.max(1_000, Math.min(error.retryAfterMs, claimAnswers.time.held));
      return { state: 'queued', answer, afterMs };
    }
  }

  /** Reports a trial, and notes whether the service may have it now. */
  async #try(report: StoredTrial, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    const { outbox } = this.#parts.ledger;
    outbox.sending(report.key, report.lease);
    try {
      await this.#report(report, trial, signal);
    } catch (error) {
      if (!report.sent && !mayHaveArrived(error)) outbox.notSent(report.key);
      throw error;
    }
  }

  /**
   * Reports a trial in the form that this service accepts: by its run or by its batch, with all events or
   * only with the Started event, with its lease or without. A form that it refuses is changed once.
   */
  async #report(report: StoredTrial, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    let [identifier, kinds, { lease }] = [this.#identifier, this.#events, report] as const;
    // The place of a found run in its batch is not known, and without it, a batch's id names no run.
    if (report.origin === 'found') identifier = 'run';
    const changed = new Map<string, unknown>();
    for (;;) {
      const isFirst = identifier === 'batch' && !this.#filed.has(report.runId);
      using _alone = isFirst ? await this.#first.acquire(signal) : undefined;
      if (identifier === 'batch' && this.#misfiled) throw changed.get('identifier') ?? this.#misfiled;
      const id = identifier === 'run' ? report.runId : report.batchId;
      const events = kinds === 'all' ? trial.events : trial.events.filter(({ _tag }) => _tag === 'Started');
      const request = { id, trial: { ...trial, events }, ...(lease !== undefined && { attempt: lease }) };
      try {
        await this.client.call('evals.reportTrial', request, { signal });
        if (identifier === 'batch') await this.#requireFiled(report, trial, signal);
        if (report.origin === 'planned') this.#identifier = identifier;
        if (changed.has('events') && isPlain(trial.events)) this.#rememberStartedOnly();
        return;
      } catch (error) {
        if (lease !== undefined && refusesLease(error)) lease = undefined;
        else if (error instanceof NotFound && report.origin === 'planned' && !changed.has('identifier')) {
          changed.set('identifier', error);
          identifier = identifier === 'run' ? 'batch' : 'run';
        } else if (kinds === 'all' && events.length > 1 && refusesEvents(error)) {
          changed.set('events', error);
          kinds = 'started';
        }
        // The change was not the reason, and the first answer says more.
        else if (error instanceof NotFound) throw changed.get('identifier') ?? error;
        else throw (error instanceof DecodeRefusal && changed.get('events')) || error;
      }
    }
  }

  /**
   * Given a batch's id, a service finds the run by `taskIndex`. If its order of runs is another one than it
   * told, the result is filed under another run: looked at once for each run, after its first success.
   */
  async #requireFiled(report: StoredTrial, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    const { run: key, runId: id, caseId, ordinal } = report;
    if (this.#filed.has(id)) return;
    // If the service cannot be asked now, it is looked at after the next report.
    const look = Array.fromAsync(recordsOf([{ key, id, caseId }], 'results', this.client, signal));
    const [record] = await look.catch(() => []);
    signal.throwIfAborted();
    if (record === undefined) return;
    const { shown } = trialIn(record[1], ordinal, () => trial);
    if (shown === 'ours' || shown === 'bare' || shown === 'unclear') {
      this.#filed.add(id);
      return;
    }
    this.#misfiled = infrastructureError(
      'REPORT_MISFILED',
      `the service accepted trial ${ordinal} of run ${id} by its batch and its place ${trial.taskIndex} in it, ` +
        'but does not show the result there: it may have filed it under another run',
      {
        hint: 'Look at the runs of the batch at the service (offsite service runs CASE), and tell its owner: `taskIndex` is the position in the `runs` that evals.start returned.',
      },
    );
    throw this.#misfiled;
  }

  #rememberStartedOnly(): void {
    if (this.#events === 'started') return;
    this.#events = 'started';
    this.#parts.warn(
      'this service refuses trajectory events; it gets only the Started event, the ledger keeps the others',
    );
  }
}

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

function refusalOf(report: StoredTrial, error: OffsiteError): string {
  if (!(error instanceof NotFound) || report.origin === 'planned') return error.message;
  return `the service listed this run and has it no more: export the result, drop it, and queue its suite again (${error.message})`;
}

/**
 * Whether a refusal of these events says something about the service, and not about what an agent printed:
 * they are few, and in printable ASCII.
 */
function isPlain(events: ReportedTrial['events']): boolean {
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

/**
 * Hands the records of platform trials to the service of this process. A result that the service already has
 * counts as delivered: a process died before it noted the delivery.
 */
export function platformSender(
  { trials }: Pick<Ledger, 'trials'>,
  platform: Pick<PlatformTrials, 'complete'>,
): Sender {
  return {
    async send({ key, runId, ordinal }) {
      await platform.complete(runId, ordinal, readRecord(trials.result(key)));
      return { state: 'delivered' };
    },
  };
}
