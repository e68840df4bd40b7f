import type { Client } from '../client/client.ts';
import { Conflict, DecodeRefusal, NotFound, Unauthorized } from '../client/refusal.ts';
import type { Clock } from '../clock.ts';
import type { ReportedTrial, TrialEvent } from '../contract/report.ts';
import type { Outbox, PendingReport } from '../ledger/outbox.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';

/** Milliseconds until an undelivered report is due again. The client has already repeated the call by then. */
const pause = 60_000;

export type Delivered =
  | { kind: 'delivered' }
  /** Still in the outbox: `queued` goes out again later, `parked` waits for a person. */
  | { kind: 'kept'; state: 'queued' | 'parked'; answer: string };

/**
 * Brings reports of finished trials from the ledger's outbox to one service, and remembers how that service wants them where the
 * specification leaves it open.
 */
export class Delivery {
  readonly #client: Client;
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  /** What `id` names: the run, unless this service knew only the batch. */
  #identifier: 'run' | 'batch' = 'run';
  /** Which events are sent: all, unless this service refused them. */
  #events: 'all' | 'started' = 'all';

  constructor(parts: { client: Client; outbox: Outbox; clock: Clock; warn: (message: string) => void }) {
    this.#client = parts.client;
    this.#outbox = parts.outbox;
    this.#clock = parts.clock;
    this.#warn = parts.warn;
  }

  /** Delivers one report. Rejects only where the signal aborts; the report is then still queued. */
  async deliver(report: PendingReport, signal: AbortSignal): Promise<Delivered> {
    try {
      await this.#send(report, this.#outbox.body(report.trial), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Conflict && (await this.#isRecorded(report, signal))) {
        this.#warn(
          `${nameOf(report)} was already recorded with other content, which stays: ${error.message}`,
        );
      } else {
        return this.#keep(report, error);
      }
    }
    this.#outbox.delivered(report.trial);
    return { kind: 'delivered' };
  }

  async #send(report: PendingReport, trial: ReportedTrial, signal: AbortSignal): Promise<void> {
    const id = this.#identifier === 'run' ? report.runId : report.batchId;
    const events = this.#events === 'all' ? trial.events : trial.events.filter(isStarted);
    try {
      await this.#client.call('evals.reportTrial', { id, trial: { ...trial, events } }, { signal });
    } catch (error) {
      if (error instanceof NotFound && this.#identifier === 'run') {
        await this.#sendByBatch(report, trial, error, signal);
      } else if (this.#events === 'all' && refusesEvents(error)) {
        this.#events = 'started';
        this.#warn(
          'this service refuses trajectory events; it gets the Started event alone, the rest stays in the ledger',
        );
        await this.#send(report, trial, signal);
      } else {
        throw error;
      }
    }
  }

  /** The specification does not say whether a report's `id` is the run's or the batch's: a service that knows no such run is asked with the other. */
  async #sendByBatch(
    report: PendingReport,
    trial: ReportedTrial,
    first: NotFound,
    signal: AbortSignal,
  ): Promise<void> {
    this.#identifier = 'batch';
    try {
      await this.#send(report, trial, signal);
    } catch (error) {
      this.#identifier = 'run';
      throw error instanceof NotFound ? first : error;
    }
  }

  async #isRecorded(report: PendingReport, signal: AbortSignal): Promise<boolean> {
    const caseId = report.caseId;
    for await (const run of this.#client.runs({ caseId }, { signal })) {
      if (run.id !== report.runId) continue;
      const trial = run.trials?.find(({ ordinal }) => ordinal === report.ordinal);
      return trial !== undefined && trial.status !== 'queued' && trial.status !== 'running';
    }
    return false;
  }

  #keep(report: PendingReport, error: unknown): Delivered {
    const answer = messageOf(error);
    if (isFinal(error)) {
      this.#outbox.parked(report.trial, answer);
      return { kind: 'kept', state: 'parked', answer };
    }
    this.#outbox.deferred(report.trial, answer, this.#clock.now() + pause);
    return { kind: 'kept', state: 'queued', answer };
  }
}

function isStarted(event: TrialEvent): boolean {
  return event._tag === 'Started';
}

function refusesEvents(error: unknown): boolean {
  return error instanceof DecodeRefusal && error.issues.some(({ path }) => path.startsWith('trial.events'));
}

/** Whether asking again cannot help: the service understood, and said no (or the client will not send it). A refused key can be mended. */
function isFinal(error: unknown): boolean {
  return error instanceof OffsiteError && error.kind === 'input' && !(error instanceof Unauthorized);
}

function nameOf({ runId, ordinal }: PendingReport): string {
  return `trial ${ordinal} of run ${runId}`;
}
