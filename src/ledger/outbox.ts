import { serviceAnswers } from '../bounds/service.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { BatchKey, RunKey, StoredRun, TrialKey } from './batches.ts';
import type { BlobStore } from './blobs.ts';
import { type Records, Table, type Value } from './records.ts';
import { fromTrials, type ReportState, reportState, type StoredTrial, storedTrials } from './trial-rows.ts';

/** A run of the ledger, as the service knows it. */
export type KnownRun = Pick<StoredRun, 'key' | 'id' | 'caseId'>;

/** Times are epoch milliseconds. */
export interface OutboxStanding {
  queued: number;
  sent: number;
  parked: number;
  oldestAt?: number | undefined;
  nextAt?: number | undefined;
}

export interface DueReports {
  service: string;
  /** If set, only the reports of this batch. */
  batch?: BatchKey | undefined;
  /** Epoch milliseconds. */
  now: number;
  limit: number;
}

const ofService = 'WHERE batches.service = ?1 AND (?2 IS NULL OR batches.key = ?2)';

const isPending = "reports.state IN ('queued', 'sent', 'parked')";

/** Reports of finished trials for the service. A report is pending until the service shows its result. */
export class Outbox extends Table {
  readonly #blobs: BlobStore;

  constructor(records: Records, blobs: BlobStore) {
    super(records);
    this.#blobs = blobs;
  }

  /** All reports whose results the service has not shown, oldest first. */
  pending(): StoredTrial[] {
    return storedTrials(this.records, `WHERE ${isPending} ORDER BY reports.trial`);
  }

  /** The reports to send now, oldest first. */
  due({ service, batch, now, limit }: DueReports): StoredTrial[] {
    return storedTrials(
      this.records,
      `${ofService} AND reports.state = 'queued' AND (next_at <= ?3 OR next_at > ?3 + ?4)
       ORDER BY reports.trial LIMIT ?5`,
      service,
      batch ?? null,
      Math.round(now),
      serviceAnswers.time.deferral,
      limit,
    );
  }

  /** The trials of a run, in order, except those left to somebody else and those whose report was dropped. */
  ofRun(run: RunKey): StoredTrial[] {
    const which = `WHERE runs.key = ? AND ${reportState} IS NOT NULL ORDER BY trials.ordinal`;
    return storedTrials(this.records, which, run);
  }

  /**
   * What a service, or a batch of it, does not show: how many reports are queued, were only sent, and wait
   * for a person. `oldestAt` is when the trial of the oldest one that does not wait for a person finished,
   * `nextAt` when the next queued one is due (epoch milliseconds).
   */
  standing(service: string, batch: BatchKey | null = null): OutboxStanding {
    const [standing] = this.records.select<OutboxStanding>(
      `SELECT count(*) FILTER (WHERE reports.state = 'queued') AS queued,
         count(*) FILTER (WHERE reports.state = 'sent') AS sent,
         count(*) FILTER (WHERE reports.state = 'parked') AS parked,
         min(trials.finished_at) FILTER (WHERE reports.state <> 'parked') AS oldestAt,
         min(next_at) FILTER (WHERE reports.state = 'queued') AS nextAt
       ${fromTrials} ${ofService} AND ${isPending}`,
      service,
      batch,
    );
    return standing as OutboxStanding;
  }

  /** The runs with reports that were only sent, or with results that the service has shown; last first. */
  runs(service: string, of: 'sent' | 'shown'): KnownRun[] {
    const condition =
      of === 'sent' ? "reports.state = 'sent'" : `${reportState} IN ('delivered', 'superseded', 'taken')`;
    return this.records.select(
      `SELECT runs.key, runs.id, runs.case_id ${fromTrials} ${ofService} AND ${condition} GROUP BY runs.key
       ORDER BY max(coalesce(nullif(reports.since, 0), trials.finished_at, 0)) DESC, max(trials.key) DESC`,
      service,
      null,
    );
  }

  /** The blob with a trial's report; undefined if none was made, because the service had the result. */
  blobOf(trial: TrialKey): string | undefined {
    return this.records.value('SELECT body FROM reports WHERE trial = ?', trial) as string | undefined;
  }

  /** The report's content. Throws `BLOB_MISSING` or `BLOB_DAMAGED` if the disk has lost it. */
  body(trial: TrialKey): ReportedTrial {
    return this.#blobs.readJson(this.blobOf(trial) ?? '') as ReportedTrial;
  }

  /** Notes that a report is about to be sent, so that it counts as sent whatever ends this process. */
  sending(trial: TrialKey, lease?: number): void {
    const change = 'UPDATE reports SET sent = 1, tries = tries + 1, lease = ? WHERE trial = ?';
    this.records.run(change, lease ?? null, trial);
  }

  /** Notes that the service did not get the report after all. */
  notSent(trial: TrialKey): void {
    this.records.run('UPDATE reports SET sent = 0 WHERE trial = ?', trial);
  }

  /**
   * Notes what became of a report, and the answer that led to it. Queued, it is due at `nextAt` (epoch
   * milliseconds), by default at once. Superseded, the trial counts as run elsewhere; its result stays here.
   *
   * @param version the version of Offsite whose report is parked
   */
  become(
    trial: TrialKey,
    state: ReportState,
    { answer, nextAt, version }: { answer?: string | undefined; nextAt?: number; version?: string } = {},
  ): void {
    const now = this.records.now();
    const due = Math.round(nextAt ?? now);
    this.#change(
      trial,
      { state, detail: answer },
      'UPDATE reports SET state = ?, answer = ?, since = ?, next_at = ?, refused = ? WHERE trial = ?',
      state,
      answer ?? null,
      now,
      due,
      version ?? null,
    );
  }

  /** Makes queued reports due at once. */
  hurry(trials: readonly TrialKey[]): void {
    this.records.run(
      `UPDATE reports SET next_at = ? WHERE state = 'queued' AND trial IN (SELECT value FROM json_each(?))`,
      this.records.now(),
      JSON.stringify(trials),
    );
  }

  /** Removes a report. The trial's result stays in the ledger. */
  drop(trial: TrialKey): void {
    this.#change(trial, { state: 'dropped', detail: 'by hand' }, 'DELETE FROM reports WHERE trial = ?');
  }

  #change(
    trial: TrialKey,
    change: { state: string; detail: string | undefined },
    statement: string,
    ...values: Value[]
  ): void {
    this.records.transaction(() => {
      this.records.run(statement, ...values, trial);
      const withdrawn = "iif(?1 = 'superseded', 'elsewhere', nullif(withdrawn, 'elsewhere'))";
      this.records.run(`UPDATE trials SET withdrawn = ${withdrawn} WHERE key = ?2`, change.state, trial);
      this.records.note({ subject: 'report', key: trial, ...change });
    });
  }
}
