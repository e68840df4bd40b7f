import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../base/clock.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import { damageIn, inTransaction, lockTimeoutMs } from './database.ts';
import { damagedDatabase, databaseFailure } from './database-failure.ts';
import type { Reserve } from './reserve.ts';

export type Value = string | number | null | Uint8Array;
export type Row = Record<string, unknown>;

/** The ledger assigns keys; ids come from the service. */
export type BatchKey = number;
export type RunKey = number;
export type TrialKey = number;

/** What a change in the journal is about. */
export type Subject = 'start' | 'batch' | 'run' | 'trial' | 'attempt' | 'report';

export interface Change {
  subject: Subject;
  /** The subject's key in its own table; a report has its trial's. */
  key: number;
  /** The subject's new state. */
  state: string;
  /** Why, for people. */
  detail?: string | undefined;
}

/** Called around every transaction, so that a test can kill the process there. */
export interface TransactionWatch {
  before(): void;
  after(): void;
}

/**
 * The ledger's database: it prepares statements once, turns SQLite errors into errors that a user
 * understands, and keeps a journal of every change of state.
 */
export class Records implements Disposable {
  readonly file: string;
  readonly #database: DatabaseSync;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #watch: TransactionWatch | undefined;
  readonly #reserve: Reserve | undefined;
  readonly #statements = new Map<string, StatementSync>();
  #isDamaged = false;

  constructor(parts: {
    file: string;
    database: DatabaseSync;
    clock: Pick<Clock, 'now'>;
    watch?: TransactionWatch | undefined;
    /** Released when the disk is full. */
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
   * Runs `change` in one transaction, which is on disk when this returns and rolled back if `change` throws.
   * Inside another transaction, it is a part of that one.
   */
  transaction<Result>(change: () => Result): Result {
    if (this.#database.isTransaction) return change();
    this.#watch?.before();
    const result = this.#guarded(() => this.#withRoom(() => inTransaction(this.#database, change)));
    this.#watch?.after();
    return result;
  }

  /**
   * Does `work`. If the disk is full, releases the reserve and does `work` once more: a failed transaction
   * has changed nothing.
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

  /**
   * As {@link run}, for what may as well be left undone. Does nothing if the disk is full or takes no more,
   * and does not wait while another process writes.
   */
  runIfPossible(statement: string, ...values: Value[]): void {
    this.#database.exec('PRAGMA busy_timeout = 0');
    try {
      this.run(statement, ...values);
    } catch (error) {
      const code = error instanceof OffsiteError ? error.code : undefined;
      if (!['DISK_FULL', 'DATABASE_BUSY', 'DATABASE_UNUSABLE'].includes(code ?? '')) throw error;
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${lockTimeoutMs}`);
    }
  }

  get(statement: string, ...values: Value[]): Row | undefined {
    return this.#guarded(() => this.#prepared(statement).get(...values));
  }

  all(statement: string, ...values: Value[]): Row[] {
    return this.#guarded(() => this.#prepared(statement).all(...values));
  }

  /**
   * Rows as values of the code: `task_index` is `taskIndex`, and a column that is null is undefined.
   * `Found` has to be what the statement selects.
   */
  select<Found>(statement: string, ...values: Value[]): Found[] {
    return this.all(statement, ...values).map((row) => inCode<Found>(row));
  }

  /** Adds a row, given as {@link select} gives one. Returns its key. */
  insert(table: string, row: Readonly<Record<string, Value | undefined>>): number {
    const values = Object.values(row).map((value) => value ?? null);
    return this.run(insertionOf(table, Object.keys(row)), ...values);
  }

  /** Rows one by one, for tables that are too large for one list. */
  *each(statement: string, ...values: Value[]): Generator<Row, void, undefined> {
    // This statement is not cached: another use of it during the iteration would restart it.
    const rows = this.#guarded(() => this.#database.prepare(statement).iterate(...values));
    for (;;) {
      const next = this.#guarded(() => rows.next());
      if (next.done) return;
      yield next.value as Row;
    }
  }

  /** The first column of the first row; undefined if there is none, or if it is null. */
  value(statement: string, ...values: Value[]): unknown {
    return Object.values(this.get(statement, ...values) ?? {})[0] ?? undefined;
  }

  /** Gives a row a state, and notes that in the journal. Call it in a transaction. */
  become(change: Change & { subject: keyof typeof tables }): void {
    this.run(`UPDATE ${tables[change.subject]} SET state = ? WHERE key = ?`, change.state, change.key);
    this.note(change);
  }

  /** Writes a change of state to the journal. Call it in the transaction that makes the change. */
  note({ subject, key, state, detail }: Change): void {
    this.insert('changes', { at: this.now(), subject, of: key, state, detail });
  }

  /** Checks for damage, as {@link damageIn} does. Throws `DATABASE_DAMAGED`. */
  check(depth: 'quick' | 'full'): void {
    this.#guarded(() => {
      const damage = damageIn(this.#database, depth);
      if (damage !== undefined) throw damagedDatabase(this.file, damage);
    });
  }

  /** Whether a statement met a damaged part. */
  get isDamaged(): boolean {
    return this.#isDamaged;
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #prepared(statement: string): StatementSync {
    return once(this.#statements, statement, () => this.#database.prepare(statement));
  }

  #guarded<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      const failure = databaseFailure(this.file, error);
      if (failure instanceof OffsiteError && failure.code === 'DATABASE_DAMAGED') this.#isDamaged = true;
      throw failure;
    }
  }
}

/** The tables whose rows have a state. */
const tables = { start: 'starts', batch: 'batches', run: 'runs', trial: 'trials' } as const;

/** A part of the ledger: what it does with some of the tables. */
export abstract class Table {
  protected readonly records: Records;

  constructor(records: Records) {
    this.records = records;
  }
}

/** A row as a value of the code: see {@link Records.select}. */
export function inCode<Found>(row: Row): Found {
  const found: Row = {};
  for (const column in row) found[nameOf(column)] = row[column] ?? undefined;
  return found as Found;
}

/** Made once for each form of a row: a start of many runs adds thousands. */
const insertions = new Map<string, string>();

function insertionOf(table: string, names: readonly string[]): string {
  return once(insertions, `${table} ${names}`, () => {
    const columns = names.map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
    return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
  });
}

const names = new Map<string, string>();

function nameOf(column: string): string {
  return once(names, column, () => column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
}

/** The value of a key, which is made when it is first asked for. */
function once<Made>(made: Map<string, Made>, key: string, make: () => Made): Made {
  const known = made.get(key);
  if (known !== undefined) return known;
  const value = make();
  made.set(key, value);
  return value;
}
