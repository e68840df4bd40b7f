import { serviceAnswers } from '../bounds/service.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { BatchKey, RunKey, TrialKey } from './batches.ts';
import type { BlobStore } from './blobs.ts';
import type { Records, Value } from './records.ts';

/** `queued` reports wait for delivery; `parked` reports were refused for good and wait for a person. */
export type ReportState = 'queued' | 'delivered' | 'parked';

/** A report that the service has not accepted yet. */
export interface PendingReport {
  /** The trial's key in the ledger, which is also the report's. */
  trial: TrialKey;
  service: string;
  batchId: string;
  runId: string;
  /** Whether this agent started the run or found it. The index of a found run in its batch is not known. */
  origin: 'planned' | 'found';
  caseId: string;
  ordinal: number;
  state: Exclude<ReportState, 'delivered'>;
  tries: number;
  /** Epoch milliseconds of the next try. */
  nextAt: number;
  /** The service's last answer. */
  answer: string | undefined;
  /** The number of the lease under which the trial ran; undefined if it ran without one. */
  lease: number | undefined;
}

export interface DueReports {
  service: string;
  /** If set, only the reports of this batch. */
  batch?: BatchKey | undefined;
  /** Epoch milliseconds. */
  now: number;
  limit: number;
}

const pending = `
  SELECT reports.trial, batches.service, batches.id AS batch_id, runs.id AS run_id, runs.case_id, runs.origin,
         trials.ordinal, reports.state, reports.tries, reports.next_at, reports.answer,
         reports.lease
  FROM reports
  JOIN trials ON trials.key = reports.trial
  JOIN runs ON runs.key = trials.run
  JOIN batches ON batches.key = runs.batch`;

const due = `
  FROM reports
  JOIN trials ON trials.key = reports.trial
  JOIN runs ON runs.key = trials.run
  JOIN batches ON batches.key = runs.batch
  WHERE reports.state = 'queued' AND batches.service = ?1 AND (?2 IS NULL OR batches.key = ?2)`;

/** Reports of finished trials for the service. A report stays here until the service has accepted it. */
export class Outbox {
  readonly #records: Records;
  readonly #blobs: BlobStore;

  constructor(records: Records, blobs: BlobStore) {
    this.#records = records;
    this.#blobs = blobs;
  }

  /** All reports that are not delivered, oldest first. */
  pending(): PendingReport[] {
    return this.#select(`${pending} WHERE reports.state <> 'delivered' ORDER BY reports.trial`);
  }

  /** The report of one trial, if it is queued. */
  ofTrial(trial: TrialKey): PendingReport | undefined {
    return this.#select(`${pending} WHERE reports.state = 'queued' AND reports.trial = ?`, trial)[0];
  }

  /** The reports to send now, oldest first. */
  due({ service, batch, now, limit }: DueReports): PendingReport[] {
    const keys = this.#records.all(
      `SELECT reports.trial ${due} AND (next_at <= ?3 OR next_at > ?3 + ?4) ORDER BY reports.trial LIMIT ?5`,
      service,
      batch ?? null,
      Math.round(now),
      serviceAnswers.time.deferral,
      limit,
    );
    return keys.flatMap(({ trial }) => this.ofTrial(Number(trial)) ?? []);
  }

  /** How many reports are queued for a service, and when the next one is due (epoch milliseconds). */
  backlog({ service, batch }: Pick<DueReports, 'service' | 'batch'>): {
    count: number;
    nextAt: number | undefined;
  } {
    const row = this.#records.get(
      `SELECT count(*) AS count, min(next_at) AS next_at ${due}`,
      service,
      batch ?? null,
    );
    const nextAt = row?.next_at ?? undefined;
    return { count: Number(row?.count ?? 0), nextAt: nextAt === undefined ? undefined : Number(nextAt) };
  }

  /**
   * What a service has not accepted: how many reports are queued, how many wait for a person, and when the
   * oldest queued one's trial finished (epoch milliseconds).
   */
  standing(service: string): { queued: number; parked: number; oldestAt: number | undefined } {
    const row = this.#records.get(
      `SELECT count(*) FILTER (WHERE reports.state = 'queued') AS queued,
         count(*) FILTER (WHERE reports.state = 'parked') AS parked,
         min(trials.finished_at) FILTER (WHERE reports.state = 'queued') AS oldest_at
       FROM reports JOIN trials ON trials.key = reports.trial JOIN runs ON runs.key = trials.run
         JOIN batches ON batches.key = runs.batch
       WHERE reports.state <> 'delivered' AND batches.service = ?`,
      service,
    );
    const oldestAt = row?.oldest_at ?? undefined;
    return {
      queued: Number(row?.queued ?? 0),
      parked: Number(row?.parked ?? 0),
      oldestAt: oldestAt === undefined ? undefined : Number(oldestAt),
    };
  }

  /** The report's content. Throws `BLOB_MISSING` or `BLOB_DAMAGED` if the disk has lost it. */
  body(trial: TrialKey): ReportedTrial {
    const row = this.#records.get('SELECT body FROM reports WHERE trial = ?', trial);
    return this.#blobs.readJson(String(row?.body)) as ReportedTrial;
  }

  delivered(trial: TrialKey): void {
    this.#change(
      trial,
      { state: 'delivered' },
      "UPDATE reports SET state = 'delivered', tries = tries + 1, answer = NULL WHERE trial = ?",
    );
  }

  /** Notes that the service could not accept the report now. */
  deferred(trial: TrialKey, answer: string, nextAt: number): void {
    this.#change(
      trial,
      { state: 'deferred', detail: answer },
      'UPDATE reports SET tries = tries + 1, answer = ?, next_at = ? WHERE trial = ?',
      answer,
      Math.round(nextAt),
    );
  }

  /** Notes that the service refuses the report for good, so that it waits for a person. */
  parked(trial: TrialKey, answer: string): void {
    this.#change(
      trial,
      { state: 'parked', detail: answer },
      "UPDATE reports SET state = 'parked', tries = tries + 1, answer = ? WHERE trial = ?",
      answer,
    );
  }

  /**
   * Removes the report of a trial that another agent has run: the trial's result stays in the ledger, and
   * nobody needs to decide anything.
   */
  superseded(trial: TrialKey, answer: string): void {
    this.#records.transaction(() => {
      this.#records.run('DELETE FROM reports WHERE trial = ?', trial);
      this.#records.note({ subject: 'report', key: trial, state: 'superseded', detail: answer });
      this.#records.run("UPDATE trials SET withdrawn = 'elsewhere' WHERE key = ?", trial);
    });
  }

  /** Makes a queued or parked report due at once. */
  retry(trial: TrialKey): void {
    this.#queueAgain(trial, 'by hand');
  }

  /** Queues delivered reports of a run again, because their receiver has lost them. */
  redeliver(run: RunKey, ordinals: readonly number[]): void {
    const lost = this.#records.all(
      `SELECT reports.trial FROM reports JOIN trials ON trials.key = reports.trial
       WHERE trials.run = ? AND reports.state = 'delivered'
         AND trials.ordinal IN (SELECT value FROM json_each(?))`,
      run,
      JSON.stringify(ordinals),
    );
    for (const { trial } of lost) this.#queueAgain(Number(trial), 'its receiver lost it');
  }

  /** Removes a report. The trial's result stays in the ledger. */
  drop(trial: TrialKey): void {
    this.#change(trial, { state: 'dropped', detail: 'by hand' }, 'DELETE FROM reports WHERE trial = ?');
  }

  #queueAgain(trial: TrialKey, detail: string): void {
    this.#change(
      trial,
      { state: 'queued', detail },
      "UPDATE reports SET state = 'queued', next_at = ? WHERE trial = ?",
      this.#records.now(),
    );
  }

  #change(
    trial: TrialKey,
    change: { state: string; detail?: string },
    statement: string,
    ...values: Value[]
  ): void {
    this.#records.transaction(() => {
      this.#records.run(statement, ...values, trial);
      this.#records.note({ subject: 'report', key: trial, ...change });
    });
  }

  #select(statement: string, ...values: Value[]): PendingReport[] {
    return this.#records.all(statement, ...values).map((row) => ({
      trial: Number(row.trial),
      service: String(row.service),
      batchId: String(row.batch_id),
      runId: String(row.run_id),
      origin: row.origin === 'found' ? 'found' : 'planned',
      caseId: String(row.case_id),
      ordinal: Number(row.ordinal),
      state: row.state === 'parked' ? 'parked' : 'queued',
      tries: Number(row.tries),
      nextAt: Number(row.next_at),
      answer: row.answer === null ? undefined : String(row.answer),
      lease: row.lease === null ? undefined : Number(row.lease),
    }));
  }
}
