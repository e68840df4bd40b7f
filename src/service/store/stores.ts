import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Prompt } from '../../contract/catalog.ts';
import type { Trial } from '../../contract/record.ts';
import { inCode } from '../../ledger/records.ts';
import { recordPath } from '../../trial/collect/artifacts.ts';
import { digestOfKept, type StoredTrial } from '../record/stored-trial.ts';
import { createBatchStore, createCaseStore } from './batches.ts';
import { createKeyStore } from './keys.ts';
import { createBaselineStore, createPlatformStore } from './platform-runs.ts';
import { createLeaseStore, createRunStore, createTrialStore, keyOf, keysOfRun } from './runs.ts';

export type Stores = ReturnType<typeof createStores>;

/**
 * Everything in service.db, by subject.
 *
 * @param isAudited whether trials whose evidence was graded again here count for baselines
 */
export function createStores(database: DatabaseSync, now: () => number, isAudited = false) {
  return {
    keys: createKeyStore(database, now),
    batches: createBatchStore(database),
    runs: createRunStore(database),
    trials: createTrialStore(database),
    platform: createPlatformStore(database),
    audits: createAuditStore(database),
    baselines: createBaselineStore(database, isAudited),
    leases: createLeaseStore(database),
    cases: createCaseStore(database),
    prompts: createPromptStore(database),
  };
}

/** Prompts: writes append versions, counted from 1; a channel points to one version. */
function createPromptStore(database: DatabaseSync) {
  const newest = database.prepare(
    'SELECT * FROM prompt_versions WHERE organization = ? AND prompt_id = ? ORDER BY version DESC LIMIT 1',
  );
  const exact = database.prepare(
    'SELECT * FROM prompt_versions WHERE organization = ? AND prompt_id = ? AND version = ?',
  );
  const newestVersion = database.prepare(
    'SELECT max(version) AS version FROM prompt_versions WHERE organization = ? AND prompt_id = ?',
  );
  const insert = database.prepare(
    `INSERT INTO prompt_versions (organization, prompt_id, version, content, created_at)
     VALUES (?, ?, ?, ?, ?)`,
  );
  const allChannels = database.prepare(
    'SELECT name, version FROM channels WHERE organization = ? AND prompt_id = ? ORDER BY name',
  );
  const channels = database.prepare(
    'SELECT name FROM channels WHERE organization = ? AND prompt_id = ? AND version = ? ORDER BY name',
  );
  const point = database.prepare(
    `INSERT INTO channels (organization, prompt_id, name, version) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET version = excluded.version`,
  );

  function promptOf(organization: number, row: Record<string, unknown> | undefined): Prompt | undefined {
    if (!row) return undefined;
    const id = String(row.prompt_id);
    const version = Number(row.version);
    return {
      id,
      version,
      content: JSON.parse(String(row.content)),
      createdAt: new Date(Number(row.created_at)).toISOString(),
      channels: channels.all(organization, id, version).map(({ name }) => String(name)),
    };
  }

  return {
    append(organization: number, id: string, content: string, now: number): Prompt {
      const version = Number(newestVersion.get(organization, id)?.version ?? 0) + 1;
      insert.run(organization, id, version, JSON.stringify(content), now);
      return { id, version, content, createdAt: new Date(now).toISOString(), channels: [] };
    },
    /** Without `version`, the newest one. undefined if there is none. */
    find: (organization: number, id: string, version?: number): Prompt | undefined =>
      promptOf(
        organization,
        version === undefined ? newest.get(organization, id) : exact.get(organization, id, version),
      ),
    // Versions are counted from 1, and none is removed.
    has: (organization: number, id: string, version: number): boolean =>
      version >= 1 && version <= Number(newestVersion.get(organization, id)?.version ?? 0),
    /** The version that each channel points to, by the channel's name, in alphabetical order. */
    channels(organization: number, id: string): Map<string, number> {
      const rows = allChannels.all(organization, id);
      return new Map(rows.map(({ name, version }) => [String(name), Number(version)]));
    },
    /** The version must exist. */
    point(organization: number, id: string, name: string, version: number): void {
      point.run(organization, id, name, version);
    },
  };
}

/** How far the evidence of a reported trial holds. */
interface AuditMark {
  level: string;
  /** Epoch milliseconds. */
  auditedAt: number;
}

/** What evidence of a trial must agree with. */
interface Committed {
  /** The sha256 of the record that the report names; undefined if it names none. */
  record: string | undefined;
  /** The {@link digestOfKept} of the report. */
  report: string;
  /** The model of the run, and that of the report; undefined if it names none. */
  model: { asked: string; reported: string | undefined };
}

/** The marks of reported trials whose evidence was audited here. */
function createAuditStore(database: DatabaseSync) {
  const select = database.prepare(
    `SELECT record, leftovers, (SELECT model FROM runs WHERE runs.key = trials.key / 16) AS model
     FROM trials WHERE key = ?`,
  );
  // An audit that went less far takes nothing back.
  const put = database.prepare(
    `INSERT INTO audited_trials (key, level, audited_at) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET level = excluded.level, audited_at = excluded.audited_at
     WHERE level != 'regraded' OR excluded.level = 'regraded'`,
  );
  const count = database.prepare(
    `UPDATE runs SET suite_id =
       (SELECT json_extract(suite_name, '$.id') FROM batches WHERE batches.key = runs.batch)
     WHERE key = ? AND suite_id IS NULL`,
  );
  const selectMarks = database.prepare(
    `SELECT key, level, audited_at FROM audited_trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
  );

  return {
    /** What the report of a trial commits to; undefined if it has not been reported. */
    committed(run: number, ordinal: number): Committed | undefined {
      const row = select.get(keyOf(run, ordinal));
      if (!row) return undefined;
      const texts = { record: String(row.record), leftovers: String(row.leftovers) };
      const { artifacts = [] }: Pick<Trial, 'artifacts'> = JSON.parse(texts.record);
      const { events }: StoredTrial['leftovers'] = JSON.parse(texts.leftovers);
      const reported = events.flatMap((event) => ('model' in event ? String(event.model) : []))[0];
      return {
        record: artifacts.find(({ path }) => path === recordPath)?.sha256,
        model: { asked: String(row.model), reported },
        report: digestOfKept(texts),
      };
    },
    /** A trial keeps the highest level that it had. */
    mark(run: number, ordinal: number, { level, auditedAt }: AuditMark): void {
      put.run(keyOf(run, ordinal), level, auditedAt);
      if (level === 'regraded') count.run(run);
    },
    /** By ordinal. */
    marks(run: number): Map<number, AuditMark> {
      const rows = selectMarks.all(run).map((row) => inCode<AuditMark & { key: number }>(row));
      return new Map(rows.map(({ key, ...mark }) => [key - keyOf(run, 0), mark]));
    },
  };
}

/**
 * Group commit. A commit waits for the disk, so changes that arrive in one turn of the event loop share one
 * transaction. Each change succeeds only after the commit. A change that throws is rolled back alone and does
 * not affect the others.
 */
export interface Writer {
  /**
   * Runs `change` (synchronous, on the writer's database) and resolves to its result after the commit is on
   * disk.
   */
  write<Result>(change: () => Result): Promise<Result>;
  /** Commits the waiting changes at once. */
  flush(): void;
}

interface Waiting {
  /**
   * Makes the change and returns a function to call after the commit. Throws if the whole transaction is
   * lost.
   */
  apply(): () => void;
  reject(error: unknown): void;
}

export function createWriter(database: DatabaseSync): Writer {
  const savepoint = {
    set: database.prepare('SAVEPOINT change'),
    keep: database.prepare('RELEASE change'),
    undo: database.prepare('ROLLBACK TO change'),
  };
  let waiting: Waiting[] = [];

  function commitWaiting(): void {
    const group = waiting;
    if (group.length === 0) return;
    waiting = [];
    try {
      database.exec('BEGIN IMMEDIATE');
      const settlers = group.map((one) => one.apply());
      database.exec('COMMIT');
      for (const settle of settlers) settle();
    } catch (error) {
      // A full disk makes SQLite roll back by itself; a second ROLLBACK would hide the cause.
      if (database.isTransaction) database.exec('ROLLBACK');
      for (const one of group) one.reject(error);
    }
  }

  return {
    write: (change) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(commitWaiting);
        waiting.push({ apply: () => applyAlone(database, savepoint, change, { resolve, reject }), reject });
      }),
    flush: commitWaiting,
  };
}

function applyAlone<Result>(
  database: DatabaseSync,
  savepoint: Record<'set' | 'keep' | 'undo', StatementSync>,
  change: () => Result,
  { resolve, reject }: { resolve: (result: Result) => void; reject: (error: unknown) => void },
): () => void {
  savepoint.set.run();
  try {
    const result = change();
    savepoint.keep.run();
    return () => resolve(result);
  } catch (error) {
    if (!database.isTransaction) throw error;
    savepoint.undo.run();
    savepoint.keep.run();
    return () => reject(error);
  }
}
