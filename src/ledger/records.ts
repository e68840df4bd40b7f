import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../clock.ts';
import { OffsiteError } from '../offsite-error.ts';
import { inTransaction } from './database.ts';
import { damagedDatabase, databaseFailure } from './database-failure.ts';
import type { Reserve } from './reserve.ts';

export type Value = string | number | null;
export type Row = Record<string, unknown>;

/** Keys are the ledger's own. */
export type BatchKey = number;
export type RunKey = number;
export type TrialKey = number;

/** What the ledger's changes are about. */
export type Subject = 'start' | 'batch' | 'run' | 'trial' | 'attempt' | 'report';

export interface Change {
  subject: Subject;
  /** The subject's key in its own table; a report has its trial's. */
  key: number;
  /** What it is from now on. */
  state: string;
  /** Why, for people. */
  detail?: string | undefined;
}

/** Told of every transaction, so that a test can end the process around each. */
export interface TransactionWatch {
  before(): void;
  after(): void;
}

/**
 * The ledger's database: statements prepared once, errors that a user understands, and a journal of every
 * change of state.
 */
export class Records implements Disposable {
  readonly file: string;
  readonly #database: DatabaseSync;
  readonly #clock: Clock;
  readonly #watch: TransactionWatch | undefined;
  readonly #reserve: Reserve | undefined;
  readonly #statements = new Map<string, StatementSync>();

  constructor(parts: {
    file: string;
    database: DatabaseSync;
    clock: Clock;
    watch?: TransactionWatch | undefined;
    /** Given back where the disk is full. */
    reserve?: Reserve | undefined;
  }) {
    this.file = parts.file;
    this.#database = parts.database;
    this.#clock = parts.clock;
    this.#watch = parts.watch;
    this.#reserve = parts.reserve;
  }

  now(): number {
    return Math.round(this.#clock.now());
  }

  /**
   * Runs `change` in one transaction that is on disk when this returns, and undone where it throws. Not to be
   * nested.
   */
  transaction<Result>(change: () => Result): Result {
    this.#watch?.before();
    const result = this.#guarded(() => this.#withRoom(() => inTransaction(this.#database, change)));
    this.#watch?.after();
    return result;
  }

  /**
   * Once more with the reserve given back, where the disk is full: a transaction that failed has changed
   * nothing.
   */
  #withRoom<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      const failure = databaseFailure(this.file, error);
      const isFull = failure instanceof OffsiteError && failure.code === 'DISK_FULL';
      if (!isFull || !this.#reserve?.giveBack()) throw error;
      return work();
    }
  }

  /** Runs a statement that writes; returns the key of the row that it inserted. */
  run(statement: string, ...values: Value[]): number {
    return this.#guarded(() => Number(this.#prepared(statement).run(...values).lastInsertRowid));
  }

  get(statement: string, ...values: Value[]): Row | undefined {
    return this.#guarded(() => this.#prepared(statement).get(...values));
  }

  all(statement: string, ...values: Value[]): Row[] {
    return this.#guarded(() => this.#prepared(statement).all(...values));
  }

  /** Rows one by one, for tables that are too large for one list. */
  *each(statement: string, ...values: Value[]): Generator<Row, void, undefined> {
    // Not a kept statement: another use of it meanwhile would start it over.
    const rows = this.#guarded(() => this.#database.prepare(statement).iterate(...values));
    for (;;) {
      const next = this.#guarded(() => rows.next());
      if (next.done) return;
      yield next.value as Row;
    }
  }

  /** Notes a change of state in the journal; belongs into the transaction that makes it. */
  note({ subject, key, state, detail }: Change): void {
    this.run(
      'INSERT INTO changes (at, subject, of, state, detail) VALUES (?, ?, ?, ?, ?)',
      this.now(),
      subject,
      key,
      state,
      detail ?? null,
    );
  }

  /**
   * Looks for damage. `quick` reads every page once (about 1 ms a MB); `full` compares indexes with their
   * tables too, in three times that. Throws `DATABASE_DAMAGED`.
   */
  check(depth: 'quick' | 'full'): void {
    const pragma = depth === 'quick' ? 'quick_check' : 'integrity_check';
    const findings = this.all(`PRAGMA ${pragma}(5)`).map((row) => String(row[pragma]));
    if (findings.length !== 1 || findings[0] !== 'ok') throw damagedDatabase(this.file, findings.join('; '));
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #prepared(statement: string): StatementSync {
    const kept = this.#statements.get(statement);
    if (kept) return kept;
    const prepared = this.#database.prepare(statement);
    this.#statements.set(statement, prepared);
    return prepared;
  }

  #guarded<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw databaseFailure(this.file, error);
    }
  }
}
