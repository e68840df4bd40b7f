import type { DatabaseSync } from 'node:sqlite';
import type { ReportedTrial } from '../contract/report.ts';
import type { BlobStore } from './blobs.ts';

/** `queued` is to be delivered, `parked` was refused for good and waits for a person. */
export type ReportState = 'queued' | 'delivered' | 'parked';

/** A report that the service has not taken yet. */
export interface PendingReport {
  /** The trial's key in the ledger. */
  trial: number;
  service: string;
  batchId: string;
  runId: string;
  caseId: string;
  ordinal: number;
  state: Exclude<ReportState, 'delivered'>;
  tries: number;
  /** Epoch milliseconds of the next try. */
  nextAt: number;
  /** What the service said last. */
  answer: string | undefined;
}

const pending = `
  SELECT reports.trial, batches.service, batches.id AS batch_id, runs.id AS run_id, runs.case_id, trials.ordinal,
         reports.state, reports.tries, reports.next_at, reports.answer
  FROM reports
  JOIN trials ON trials.key = reports.trial
  JOIN runs ON runs.key = trials.run
  JOIN batches ON batches.key = runs.batch`;

/** Reports of finished trials on their way to the service: none leaves it before the service has taken it. */
export class Outbox {
  readonly #database: DatabaseSync;
  readonly #blobs: BlobStore;

  constructor(database: DatabaseSync, blobs: BlobStore) {
    this.#database = database;
    this.#blobs = blobs;
  }

  /** All that is not delivered, oldest first. */
  pending(): PendingReport[] {
    return this.#select(`${pending} WHERE reports.state <> 'delivered' ORDER BY reports.trial`);
  }

  /** The queued report of one trial, if it is not delivered or parked. */
  ofTrial(trial: number): PendingReport | undefined {
    return this.#select(`${pending} WHERE reports.state = 'queued' AND reports.trial = ?`, trial)[0];
  }

  body(trial: number): ReportedTrial {
    const row = this.#database.prepare('SELECT body FROM reports WHERE trial = ?').get(trial);
    return JSON.parse(this.#blobs.read(String(row?.body)).toString('utf8')) as ReportedTrial;
  }

  delivered(trial: number): void {
    this.#database
      .prepare("UPDATE reports SET state = 'delivered', tries = tries + 1, answer = NULL WHERE trial = ?")
      .run(trial);
  }

  deferred(trial: number, answer: string, nextAt: number): void {
    this.#database
      .prepare('UPDATE reports SET tries = tries + 1, answer = ?, next_at = ? WHERE trial = ?')
      .run(answer, nextAt, trial);
  }

  parked(trial: number, answer: string): void {
    this.#database
      .prepare("UPDATE reports SET state = 'parked', tries = tries + 1, answer = ? WHERE trial = ?")
      .run(answer, trial);
  }

  #select(statement: string, ...values: (string | number)[]): PendingReport[] {
    return this.#database
      .prepare(statement)
      .all(...values)
      .map((row) => ({
        trial: Number(row.trial),
        service: String(row.service),
        batchId: String(row.batch_id),
        runId: String(row.run_id),
        caseId: String(row.case_id),
        ordinal: Number(row.ordinal),
        state: row.state === 'parked' ? 'parked' : 'queued',
        tries: Number(row.tries),
        nextAt: Number(row.next_at),
        answer: row.answer === null ? undefined : String(row.answer),
      }));
  }
}
