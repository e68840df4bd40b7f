import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../clock.ts';
import type { ReportedTrial } from '../contract/report.ts';
import { BlobStore } from './blobs.ts';
import { inTransaction, openDatabase } from './database.ts';
import { migrations } from './migrations.ts';
import { Outbox } from './outbox.ts';

export interface NewBatch {
  /** The service's address. */
  service: string;
  id: string;
  /** Suite name, for people. */
  suite: string;
  file: string | undefined;
  runs: NewRun[];
}

export interface NewRun {
  id: string;
  taskIndex: number;
  caseId: string;
  caseName: string;
  /** The variant's name, for people. */
  variant: string;
  /** Kept as JSON. */
  memory: unknown;
}

/** Keys are the ledger's own. */
export type RunKey = number;
export type TrialKey = number;

export interface Attempt {
  key: number;
  trial: TrialKey;
  /** From 1. */
  number: number;
}

export interface FinishedTrial {
  verdict: 'passed' | 'failed' | 'void';
  /** Why there is no verdict. Kept as JSON. */
  cause?: unknown;
  /** Everything that was found. Kept as JSON. */
  result: unknown;
  /** What the service is told. */
  report: ReportedTrial;
}

/**
 * The durable local record in the data folder: what was started, every attempt, every result, and the reports still to deliver.
 * What a method has returned from is on disk.
 */
export class Ledger implements Disposable {
  readonly blobs: BlobStore;
  readonly outbox: Outbox;
  readonly #database: DatabaseSync;
  readonly #clock: Clock;

  /** Opens the ledger of a data folder, creating it. Errors as {@link openDatabase}. */
  constructor(dataFolder: string, clock: Clock) {
    this.#database = openDatabase(join(dataFolder, 'ledger.db'), migrations);
    this.#clock = clock;
    this.blobs = new BlobStore(join(dataFolder, 'blobs'));
    this.outbox = new Outbox(this.#database, this.blobs);
  }

  /** Records a batch and its runs. Returns the runs' keys by their ids. */
  addBatch(batch: NewBatch): Map<string, RunKey> {
    return inTransaction(this.#database, () => {
      const key = this.#insert(
        'INSERT INTO batches (service, id, suite, file, started_at) VALUES (?, ?, ?, ?, ?)',
        [batch.service, batch.id, batch.suite, batch.file ?? null, this.#clock.now()],
      );
      const runs = batch.runs.map((run): [string, RunKey] => [
        run.id,
        this.#insert(
          'INSERT INTO runs (batch, id, task_index, case_id, case_name, variant, memory) VALUES (?, ?, ?, ?, ?, ?, ?)',
          [key, run.id, run.taskIndex, run.caseId, run.caseName, run.variant, JSON.stringify(run.memory)],
        ),
      ]);
      return new Map(runs);
    });
  }

  addTrial(run: RunKey, ordinal: number): TrialKey {
    return this.#insert("INSERT INTO trials (run, ordinal, state) VALUES (?, ?, 'queued')", [run, ordinal]);
  }

  beginAttempt(trial: TrialKey): Attempt {
    return inTransaction(this.#database, () => {
      const last = this.#database
        .prepare('SELECT max(number) AS number FROM attempts WHERE trial = ?')
        .get(trial);
      const number = Number(last?.number ?? 0) + 1;
      this.#database.prepare("UPDATE trials SET state = 'running' WHERE key = ?").run(trial);
      const key = this.#insert('INSERT INTO attempts (trial, number, started_at) VALUES (?, ?, ?)', [
        trial,
        number,
        this.#clock.now(),
      ]);
      return { key, trial, number };
    });
  }

  /** Ends an attempt that leaves its trial to be run again. */
  abandonAttempt(attempt: Attempt, ending: string, cause: unknown): void {
    inTransaction(this.#database, () => {
      this.#endAttempt(attempt, ending, cause);
      this.#database.prepare("UPDATE trials SET state = 'queued' WHERE key = ?").run(attempt.trial);
    });
  }

  /** Keeps a trial's result and queues its report, both or neither. Throws where the disk does not take it. */
  async finishTrial(attempt: Attempt, finished: FinishedTrial): Promise<void> {
    const result = await this.blobs.put(Buffer.from(JSON.stringify(finished.result)));
    const body = await this.blobs.put(Buffer.from(JSON.stringify(finished.report)));
    const now = this.#clock.now();
    inTransaction(this.#database, () => {
      this.#endAttempt(attempt, finished.verdict, finished.cause);
      this.#database
        .prepare(
          "UPDATE trials SET state = 'finished', verdict = ?, result = ?, finished_at = ? WHERE key = ?",
        )
        .run(finished.verdict, result.sha256, now, attempt.trial);
      this.#database
        .prepare("INSERT INTO reports (trial, body, state, next_at) VALUES (?, ?, 'queued', ?)")
        .run(attempt.trial, body.sha256, now);
    });
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #endAttempt(attempt: Attempt, ending: string, cause: unknown): void {
    this.#database
      .prepare('UPDATE attempts SET ended_at = ?, ending = ?, cause = ? WHERE key = ?')
      .run(this.#clock.now(), ending, cause === undefined ? null : JSON.stringify(cause), attempt.key);
  }

  #insert(statement: string, values: (string | number | null)[]): number {
    return Number(this.#database.prepare(statement).run(...values).lastInsertRowid);
  }
}
