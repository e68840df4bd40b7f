import { DatabaseSync } from 'node:sqlite';
import type { Prompt } from '../../contract/catalog.ts';
import type { Trial } from '../../contract/record.ts';
import { inTransaction } from '../../ledger/database.ts';
import { Records } from '../../ledger/records.ts';
import { recordPath } from '../../trial/collect/artifacts.ts';
import { digestOfKept, type StoredTrial } from '../record/stored-trial.ts';
import { createBatchStore, createCaseStore } from './batches.ts';
import { createKeyStore } from './keys.ts';
import { createBaselineStore, createPlatformStore } from './platform-runs.ts';
import { createLeaseStore, createRunStore, createTrialStore, jsonIn, keyOf, keysOfRun } from './runs.ts';

export type Stores = ReturnType<typeof createStores>;

/**
 * Everything in service.db, by subject.
 *
 * @param isAudited whether trials whose evidence was graded again here count for baselines
 */
export function createStores(database: DatabaseSync, now: () => number, isAudited = false) {
  const records = new Records({ file: database.location() ?? '', database, clock: { now } });
  return {
    keys: createKeyStore(records),
    batches: createBatchStore(records),
    runs: createRunStore(records),
    trials: createTrialStore(records),
    platform: createPlatformStore(records),
    audits: createAuditStore(records),
    baselines: createBaselineStore(records, isAudited),
    leases: createLeaseStore(records),
    copies: createCopyStore(records),
    cases: createCaseStore(records),
    prompts: createPromptStore(records),
  };
}

/** What this database knows of itself as a backup that took the place of the original. */
function createCopyStore(records: Records) {
  return {
    /** Call it when the service begins to listen. Returns whether this is the first time for a copy. */
    serve(): boolean {
      const unserved = 'WHERE served_at IS NULL';
      // A write waits for other processes that write. Only a copy needs it.
      if (!records.get(`SELECT 1 FROM copies ${unserved}`)) return false;
      const query = `UPDATE copies SET served_at = ? ${unserved} RETURNING served_at`;
      return records.get(query, records.now()) !== undefined;
    },
    /** When a copy that has this run was first served, in epoch milliseconds; undefined for any other run. */
    servedAt(run: number): number | undefined {
      const at = records.get('SELECT served_at FROM copies WHERE last_run >= ?', run)?.served_at;
      return typeof at === 'number' ? at : undefined;
    },
  };
}

/** Notes in a copy of service.db that it is one. A copy with an older schema cannot say so. */
export function noteCopy(file: string): void {
  using copy = new DatabaseSync(file);
  if (!copy.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'copies'").get()) return;
  copy.exec('DELETE FROM copies; INSERT INTO copies (last_run) SELECT coalesce(max(key), 0) FROM runs;');
}

/** Prompts: writes append versions, counted from 1; a channel points to one version. */
function createPromptStore(records: Records) {
  const ofPrompt = 'WHERE organization = ? AND prompt_id = ?';
  const newestVersion = (organization: number, id: string) =>
    Number(
      records.get(`SELECT max(version) AS version FROM prompt_versions ${ofPrompt}`, organization, id)
        ?.version ?? 0,
    );

  return {
    append(organization: number, promptId: string, content: string, now: number): Prompt {
      const version = newestVersion(organization, promptId) + 1;
      const text = JSON.stringify(content);
      records.insert('prompt_versions', { organization, promptId, version, content: text, createdAt: now });
      return { id: promptId, version, content, createdAt: new Date(now).toISOString(), channels: [] };
    },
    /** Without `version`, the newest one. undefined if there is none. */
    find(organization: number, id: string, version = newestVersion(organization, id)): Prompt | undefined {
      const query = `SELECT content, created_at FROM prompt_versions ${ofPrompt} AND version = ?`;
      const row = records.get(query, organization, id, version);
      if (!row) return undefined;
      const pointing = [...this.channels(organization, id)].filter(([, points]) => points === version);
      return {
        id,
        version,
        content: jsonIn(row.content),
        createdAt: new Date(Number(row.created_at)).toISOString(),
        channels: pointing.map(([name]) => name),
      };
    },
    // Versions are counted from 1, and none is removed.
    has: (organization: number, id: string, version: number): boolean =>
      version >= 1 && version <= newestVersion(organization, id),
    /** The version that each channel points to, by the channel's name, in alphabetical order. */
    channels(organization: number, id: string): Map<string, number> {
      const query = `SELECT name, version FROM channels ${ofPrompt} ORDER BY name`;
      const rows = records.all(query, organization, id);
      return new Map(rows.map(({ name, version }) => [String(name), Number(version)]));
    },
    /** The version must exist. */
    point(organization: number, id: string, name: string, version: number): void {
      const query = `INSERT INTO channels (organization, prompt_id, name, version) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET version = excluded.version`;
      records.run(query, organization, id, name, version);
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
function createAuditStore(records: Records) {
  return {
    /** What the report of a trial commits to; undefined if it has not been reported. */
    committed(run: number, ordinal: number): Committed | undefined {
      const row = records.get(
        `SELECT record, leftovers, (SELECT model FROM runs WHERE runs.key = trials.key / 16) AS model
         FROM trials WHERE key = ?`,
        keyOf(run, ordinal),
      );
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
    /** A trial keeps the highest level that it had: an audit that went less far takes nothing back. */
    mark(run: number, ordinal: number, { level, auditedAt }: AuditMark): void {
      const query = `INSERT INTO audited_trials (key, level, audited_at) VALUES (?, ?, ?)
        ON CONFLICT DO UPDATE SET level = excluded.level, audited_at = excluded.audited_at
        WHERE level != 'regraded' OR excluded.level = 'regraded'`;
      records.run(query, keyOf(run, ordinal), level, auditedAt);
      if (level !== 'regraded') return;
      records.run(
        `UPDATE runs SET suite_id =
           (SELECT json_extract(suite_name, '$.id') FROM batches WHERE batches.key = runs.batch)
         WHERE key = ? AND suite_id IS NULL`,
        run,
      );
    },
    /** By ordinal. */
    marks(run: number): Map<number, AuditMark> {
      const rows = records.select<AuditMark & { key: number }>(
        `SELECT key, level, audited_at FROM audited_trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
        run,
      );
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

export function createWriter(database: DatabaseSync): Writer {
  /** Each makes its change, and returns what to do after the commit. Throws if the transaction is lost. */
  let waiting: { apply(): () => void; reject(error: unknown): void }[] = [];

  function commitWaiting(): void {
    const group = waiting;
    if (group.length === 0) return;
    waiting = [];
    try {
      const settlers = inTransaction(database, () => group.map((one) => one.apply()));
      for (const settle of settlers) settle();
    } catch (error) {
      for (const one of group) one.reject(error);
    }
  }

  function applyAlone<Result>(
    change: () => Result,
    { resolve, reject }: { resolve(result: Result): void; reject(error: unknown): void },
  ): () => void {
    database.exec('SAVEPOINT change');
    try {
      const result = change();
      database.exec('RELEASE change');
      return () => resolve(result);
    } catch (error) {
      if (!database.isTransaction) throw error;
      database.exec('ROLLBACK TO change; RELEASE change');
      return () => reject(error);
    }
  }

  return {
    write: (change) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(commitWaiting);
        waiting.push({ apply: () => applyAlone(change, { resolve, reject }), reject });
      }),
    flush: commitWaiting,
  };
}
