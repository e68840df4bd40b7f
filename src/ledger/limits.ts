import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { adaptingLimits } from '../bounds/model.ts';
import { inTransaction, openDatabase } from './database.ts';

/**
 * `migrations[n]` takes version n to n + 1. Times are epoch milliseconds. Never edit a released migration.
 */
const migrations: readonly string[] = [
  `
  -- What the processes of this data folder know about the limits of models that adapt.
  CREATE TABLE limits (
    key TEXT PRIMARY KEY, -- the address, the name and the account
    model TEXT NOT NULL, -- the name in the configuration
    shared TEXT NOT NULL, -- JSON
    "limit" INTEGER NOT NULL,
    most INTEGER NOT NULL,
    in_flight INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;

  -- How they moved: one row for each stretch in one direction and for one reason.
  CREATE TABLE moves (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    "from" INTEGER NOT NULL,
    "to" INTEGER NOT NULL,
    why TEXT NOT NULL,
    steps INTEGER NOT NULL
  ) STRICT;

  CREATE INDEX moves_of ON moves (key, id);
  `,
  // What is known has another form, and is soon learned again.
  'DELETE FROM limits;',
];

/** The limit of a model as it stands. */
export interface KeptLimit {
  /** The model's name in the configuration. */
  model: string;
  key: string;
  limit: number;
  most: number;
  /** Requests of all processes, in flight or waiting, when the limit was last looked at. */
  inFlight: number;
  /** Epoch milliseconds. */
  at: number;
}

/**
 * Successive steps in which a limit moved in one direction and for one reason. Times are epoch milliseconds.
 */
export interface Stretch {
  model: string;
  since: number;
  until: number;
  from: number;
  to: number;
  why: string;
  steps: number;
}

interface Kept {
  limit: number;
  most: number;
  inFlight: number;
}

/**
 * The limits of models that adapt, shared by all processes of a data folder, in a database of their own. The
 * database changes several times a second, and is not worth a flush of the disk each time. It only remembers
 * how fast models are; without it, Offsite learns that again.
 */
export class Limits implements Disposable {
  readonly #file: string;
  #opened: DatabaseSync | undefined;

  constructor(dataFolder: string) {
    this.#file = join(dataFolder, 'limits.db');
  }

  /**
   * Replaces what is kept under a key by the `shared` value that `change` returns, and stores the `summary`
   * with it. No other process changes the value in between. `change` gets undefined if nothing is kept.
   */
  change<Shared>(
    { key, name }: { key: string; name: string },
    change: (kept: Shared | undefined) => { shared: Shared; summary: Kept },
    at: number,
  ): void {
    const database = this.#database();
    inTransaction(database, () => {
      const row = database.prepare('SELECT shared FROM limits WHERE key = ?').get(key);
      const { shared, summary } = change(row && (JSON.parse(String(row.shared)) as Shared));
      const { limit, most, inFlight } = summary;
      database
        .prepare(
          `INSERT INTO limits (key, model, shared, "limit", most, in_flight, at) VALUES (?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (key) DO UPDATE SET model = excluded.model, shared = excluded.shared,
             "limit" = excluded."limit", most = excluded.most, in_flight = excluded.in_flight, at = excluded.at`,
        )
        .run(key, name, JSON.stringify(shared), limit, most, inFlight, Math.round(at));
    });
  }

  /**
   * Records a move, as part of the last stretch if it continues that one. Keeps a bounded number of
   * stretches.
   */
  moved(
    { key, name }: { key: string; name: string },
    { at, from, to, why }: { at: number; from: number; to: number; why: string },
  ): void {
    const database = this.#database();
    inTransaction(database, () => {
      const last = database.prepare('SELECT * FROM moves WHERE key = ? ORDER BY id DESC LIMIT 1').get(key);
      const goesOn =
        last !== undefined &&
        last.why === why &&
        last.to === from &&
        Math.sign(Number(last.to) - Number(last.from)) === Math.sign(to - from);
      if (goesOn) {
        database
          .prepare('UPDATE moves SET until = ?, "to" = ?, steps = steps + 1 WHERE id = ?')
          .run(Math.round(at), to, Number(last.id));
        return;
      }
      database
        .prepare(
          'INSERT INTO moves (key, model, since, until, "from", "to", why, steps) VALUES (?, ?, ?, ?, ?, ?, ?, 1)',
        )
        .run(key, name, Math.round(at), Math.round(at), from, to, why);
      database
        .prepare(
          `DELETE FROM moves WHERE key = ?1 AND id <=
             (SELECT id FROM moves WHERE key = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
        )
        .run(key, adaptingLimits.count.stretches);
    });
  }

  /** The limits that are known, by key. */
  all(): KeptLimit[] {
    if (!this.#exists) return [];
    const rows = this.#database().prepare('SELECT * FROM limits ORDER BY model, key').all();
    return rows.map((row) => ({
      model: String(row.model),
      key: String(row.key),
      limit: Number(row.limit),
      most: Number(row.most),
      inFlight: Number(row.in_flight),
      at: Number(row.at),
    }));
  }

  /** How the limits moved between two times, oldest first. */
  moves(since: number, until: number): Stretch[] {
    if (!this.#exists) return [];
    const rows = this.#database()
      .prepare('SELECT * FROM moves WHERE until >= ? AND since <= ? ORDER BY id')
      .all(Math.round(since), Math.round(until));
    return rows.map((row) => ({
      model: String(row.model),
      since: Number(row.since),
      until: Number(row.until),
      from: Number(row.from),
      to: Number(row.to),
      why: String(row.why),
      steps: Number(row.steps),
    }));
  }

  [Symbol.dispose](): void {
    this.#opened?.close();
    this.#opened = undefined;
  }

  /** Whether there is anything to read, so that a command that only looks creates no file. */
  get #exists(): boolean {
    return this.#opened !== undefined || existsSync(this.#file);
  }

  #database(): DatabaseSync {
    if (!this.#opened) {
      this.#opened = openDatabase(this.#file, migrations);
      this.#opened.exec('PRAGMA synchronous = NORMAL');
    }
    return this.#opened;
  }
}
