import { serviceAnswers } from '../bounds/service.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { BatchKey, RunKey, TrialKey } from './batches.ts';
import type { BlobStore } from './blobs.ts';
import type { Records, Row, Value } from './records.ts';

/**
 * `queued`: waits to be sent. `sent`: the service has answered, and its record was not read since.
 * `delivered`: its record shows the result. `superseded`: it shows another one. `parked`: the service refused
 * the report as its documentation says, so only a change helps.
 */
export type ReportState = 'queued' | 'sent' | 'delivered' | 'parked' | 'superseded';

/** A trial of a run, with its report. */
export interface TrialReport {
  trial: TrialKey;
  ordinal: number;
  /** Undefined if the trial has no report, because it has no result or its report was dropped. */
  state: ReportState | undefined;
  /** Whether the service may have got the report. */
  sent: boolean;
  /** When it got this state, in epoch milliseconds; 0 if that is not known. */
  since: number;
  /** Whether the trial has no result here, and is not left to somebody else. */
  isOpen: boolean;
  /** Whether its result was taken from the service. */
  isTaken: boolean;
}

/** A report, which is pending until the service shows its result. */
export interface PendingReport {
  /** The trial's key in the ledger, which is also the report's. */
  trial: TrialKey;
  service: string;
  batchId: string;
  runId: string;
  /** The run's key in the ledger. */
  run: RunKey;
  /** Whether this agent started the run or found it. The index of a found run in its batch is not known. */
  origin: 'planned' | 'found';
  caseId: string;
  ordinal: number;
  state: ReportState;
  /** Whether the service may have got it, even if the answer was lost. */
  sent: boolean;
  tries: number;
  /** Epoch milliseconds of the next try. */
  nextAt: number;
  /** The service's last answer. */
  answer: string | undefined;
  /** The number of the lease under which the trial ran; undefined if it ran without one. */
  lease: number | undefined;
}

/** A run of the ledger, as the service knows it. */
export interface KnownRun {
  key: RunKey;
  id: string;
  caseId: string;
}

export interface DueReports {
  service: string;
  /** If set, only the reports of this batch. */
  batch?: BatchKey | undefined;
  /** Epoch milliseconds. */
  now: number;
  limit: number;
}

const from = `
  FROM reports
  JOIN trials ON trials.key = reports.trial
  JOIN runs ON runs.key = trials.run
  JOIN batches ON batches.key = runs.batch`;

const ofService = `${from} WHERE batches.service = ?1 AND (?2 IS NULL OR batches.key = ?2)`;

const columns = `
  reports.trial, batches.service, batches.id AS batch_id, runs.id AS run_id, runs.case_id, runs.origin,
  trials.ordinal, reports.state, reports.sent, reports.tries, reports.next_at, reports.answer,
  reports.lease, runs.key AS run`;

/** Reports of finished trials for the service. A report is pending until the service shows its result. */
export class Outbox {
  readonly #records: Records;
  readonly #blobs: BlobStore;

  constructor(records: Records, blobs: BlobStore) {
    this.#records = records;
    this.#blobs = blobs;
  }

  /** All reports whose results the service has not shown, oldest first. */
  pending(): PendingReport[] {
    return this.#select(`${from} WHERE reports.state IN ('queued', 'sent', 'parked') ORDER BY reports.trial`);
  }

  /** The report of one trial, in any state. */
  ofTrial(trial: TrialKey): PendingReport | undefined {
    return this.#select(`${from} WHERE reports.trial = ?`, trial)[0];
  }

  /** The reports to send now, oldest first. */
  due({ service, batch, now, limit }: DueReports): PendingReport[] {
    return this.#select(
      `${ofService} AND reports.state = 'queued' AND (next_at <= ?3 OR next_at > ?3 + ?4)
       ORDER BY reports.trial LIMIT ?5`,
      service,
      batch ?? null,
      Math.round(now),
      serviceAnswers.time.deferral,
      limit,
    );
  }

  /** How many reports are queued or only sent, and when the next queued one is due (epoch milliseconds). */
  backlog({ service, batch }: Pick<DueReports, 'service' | 'batch'>): {
    count: number;
    nextAt: number | undefined;
  } {
    const row = this.#records.get(
      `SELECT count(*) AS count, min(next_at) FILTER (WHERE reports.state = 'queued') AS next_at
       ${ofService} AND reports.state IN ('queued', 'sent')`,
      service,
      batch ?? null,
    );
    const nextAt = row?.next_at ?? undefined;
    return { count: Number(row?.count ?? 0), nextAt: nextAt === undefined ? undefined : Number(nextAt) };
  }

  /**
   * What a service does not show: how many reports are queued, were only sent, and wait for a person, and
   * when the trial of the oldest one that does not wait for a person finished (epoch milliseconds).
   */
  standing(service: string): { queued: number; sent: number; parked: number; oldestAt: number | undefined } {
    const rows = this.#records.all(
      `SELECT reports.state, count(*) AS count, min(trials.finished_at) AS oldest_at
       ${ofService} AND reports.state IN ('queued', 'sent', 'parked') GROUP BY reports.state`,
      service,
      null,
    );
    const count = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0);
    const oldest = rows.filter(({ state }) => state !== 'parked').map((row) => Number(row.oldest_at));
    const oldestAt = oldest.length === 0 ? undefined : Math.min(...oldest);
    return { queued: count('queued'), sent: count('sent'), parked: count('parked'), oldestAt };
  }

  /** The runs with reports that were sent and whose results the service has not shown. */
  unseen(service: string): KnownRun[] {
    return this.#records
      .all(
        `SELECT DISTINCT runs.key, runs.id, runs.case_id ${ofService} AND reports.state = 'sent' ORDER BY runs.key`,
        service,
        null,
      )
      .map(knownRun);
  }

  /** The blob with a trial's report; undefined if none was made, because the service had the result. */
  blobOf(trial: TrialKey): string | undefined {
    const row = this.#records.get('SELECT body FROM reports WHERE trial = ?', trial);
    return row && String(row.body);
  }

  /** The report's content. Throws `BLOB_MISSING` or `BLOB_DAMAGED` if the disk has lost it. */
  body(trial: TrialKey): ReportedTrial {
    return this.#blobs.readJson(this.blobOf(trial) ?? '') as ReportedTrial;
  }

  /** Notes that a report is about to be sent, so that it counts as sent whatever ends this process. */
  sending(trial: TrialKey): void {
    this.#records.run('UPDATE reports SET sent = 1, tries = tries + 1 WHERE trial = ?', trial);
  }

  /** Notes that the service did not get the report after all. */
  notSent(trial: TrialKey): void {
    this.#records.run('UPDATE reports SET sent = 0 WHERE trial = ?', trial);
  }

  /** Notes that the service has answered. Its record decides what the answer meant. */
  sent(trial: TrialKey, answer: string | undefined): void {
    this.#become(trial, 'sent', answer ?? null);
  }

  delivered(trial: TrialKey): void {
    this.#become(trial, 'delivered', null);
  }

  /** Notes that the report is sent again later, because the service did not take it or does not show it. */
  deferred(trial: TrialKey, answer: string, nextAt: number): void {
    this.#change(
      trial,
      { state: 'deferred', detail: answer },
      "UPDATE reports SET state = 'queued', answer = ?, next_at = ? WHERE trial = ?",
      answer,
      Math.round(nextAt),
    );
  }

  /** Notes that a trial was claimed again: its report is sent with the number of the new lease. */
  leased(trial: TrialKey, lease: number | undefined): void {
    this.#records.run('UPDATE reports SET lease = ? WHERE trial = ?', lease ?? null, trial);
  }

  /** Notes that the service refuses what this version of Offsite sends. */
  parked(trial: TrialKey, answer: string, version: string): void {
    this.#records.transaction(() => {
      this.#become(trial, 'parked', answer);
      this.#records.run('UPDATE reports SET refused = ? WHERE trial = ?', version, trial);
    });
  }

  /** Notes that the service has another result of the trial. This ledger keeps its own. */
  superseded(trial: TrialKey, answer: string): void {
    this.#records.transaction(() => {
      this.#become(trial, 'superseded', answer);
      this.#records.run("UPDATE trials SET withdrawn = 'elsewhere' WHERE key = ?", trial);
    });
  }

  /** The trials of a run, in order. */
  ofRun(run: RunKey): TrialReport[] {
    return this.#records
      .all(
        `SELECT trials.key, trials.ordinal, trials.state AS of_trial, trials.withdrawn, reports.state, reports.sent,
           reports.since
         FROM trials LEFT JOIN reports ON reports.trial = trials.key WHERE trials.run = ? ORDER BY trials.ordinal`,
        run,
      )
      .map((row) => ({
        trial: Number(row.key),
        ordinal: Number(row.ordinal),
        state: row.state === null ? undefined : (String(row.state) as ReportState),
        sent: row.sent === 1,
        since: Number(row.since ?? 0),
        isOpen: row.of_trial !== 'finished' && row.withdrawn === null,
        isTaken: row.of_trial === 'finished' && row.withdrawn === 'elsewhere' && row.state === null,
      }));
  }

  /** The runs whose results a service has shown, the last one first. */
  shown(service: string): KnownRun[] {
    return this.#records
      .all(
        `SELECT runs.key, runs.id, runs.case_id, max(trials.key) AS trial,
           max(coalesce(nullif(reports.since, 0), trials.finished_at, 0)) AS since
         FROM trials LEFT JOIN reports ON reports.trial = trials.key JOIN runs ON runs.key = trials.run
           JOIN batches ON batches.key = runs.batch
         WHERE batches.service = ? AND (reports.state IN ('delivered', 'superseded')
           OR reports.trial IS NULL AND trials.state = 'finished' AND trials.withdrawn = 'elsewhere')
         GROUP BY runs.key ORDER BY since DESC, trial DESC`,
        service,
      )
      .map(knownRun);
  }

  /**
   * Queues the parked reports of a service again that were refused before a time (epoch milliseconds), or by
   * the service's answer to another version of Offsite. Returns how many there were.
   */
  offerAgain(service: string, { before, version }: { before: number; version: string }): number {
    const parked = this.#select(
      `${ofService} AND reports.state = 'parked' AND (reports.since < ?3 OR reports.refused IS NOT ?4)`,
      service,
      null,
      Math.round(before),
      version,
    );
    for (const { trial } of parked) this.#queueAgain(trial, 'the service may take it now');
    return parked.length;
  }

  /** Makes all queued reports of a service due at once. */
  hurry(service: string): void {
    const queued = `SELECT reports.trial ${ofService} AND reports.state = 'queued'`;
    this.#records.run(
      `UPDATE reports SET next_at = ?3 WHERE trial IN (${queued})`,
      service,
      null,
      this.#records.now(),
    );
  }

  /** Makes a queued or parked report due at once. */
  retry(trial: TrialKey): void {
    this.#queueAgain(trial, 'by hand');
  }

  /** Queues a report again that the service had, because it has no result of the trial now. */
  sendAgain(trial: TrialKey): void {
    this.#records.transaction(() => {
      this.#queueAgain(trial, 'the service has no result of the trial now');
      this.#records.run(
        "UPDATE trials SET withdrawn = NULL WHERE key = ? AND withdrawn = 'elsewhere'",
        trial,
      );
    });
  }

  /** Removes a report. The trial's result stays in the ledger. */
  drop(trial: TrialKey): void {
    this.#change(trial, { state: 'dropped', detail: 'by hand' }, 'DELETE FROM reports WHERE trial = ?');
  }

  #queueAgain(trial: TrialKey, detail: string): void {
    this.#change(
      trial,
      { state: 'queued', detail },
      "UPDATE reports SET state = 'queued', next_at = ?1, since = ?1 WHERE trial = ?2",
      this.#records.now(),
    );
  }

  #become(trial: TrialKey, state: ReportState, answer: string | null): void {
    this.#change(
      trial,
      { state, ...(answer !== null && { detail: answer }) },
      'UPDATE reports SET state = ?, answer = ?, since = ? WHERE trial = ?',
      state,
      answer,
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

  #select(rows: string, ...values: Value[]): PendingReport[] {
    return this.#records.all(`SELECT ${columns} ${rows}`, ...values).map((row) => ({
      trial: Number(row.trial),
      service: String(row.service),
      batchId: String(row.batch_id),
      runId: String(row.run_id),
      origin: row.origin === 'found' ? 'found' : 'planned',
      caseId: String(row.case_id),
      ordinal: Number(row.ordinal),
      state: row.state as ReportState,
      sent: row.sent === 1,
      run: Number(row.run),
      tries: Number(row.tries),
      nextAt: Number(row.next_at),
      answer: row.answer === null ? undefined : String(row.answer),
      lease: row.lease === null ? undefined : Number(row.lease),
    }));
  }
}

function knownRun(row: Row): KnownRun {
  return { key: Number(row.key), id: String(row.id), caseId: String(row.case_id) };
}
