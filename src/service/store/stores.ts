import { DatabaseSync } from 'node:sqlite';
import { serviceRequests } from '../../bounds/callers.ts';
import type { Prompt } from '../../contract/catalog.ts';
import { inTransaction } from '../../ledger/database.ts';
import { Records } from '../../ledger/records.ts';
import { createKeyStore } from './keys.ts';
import { createBaselineStore, createOpenRunStore } from './platform-runs.ts';
import { createRunStore, jsonIn } from './runs.ts';
import { createTrialStore } from './trials.ts';

export type Stores = ReturnType<typeof createStores>;

/**
 * Everything in service.db, by subject.
 *
 * @param isAudited whether trials whose evidence was graded again here count for baselines
 */
export function createStores(database: DatabaseSync, now: () => number, isAudited = false) {
  const records = new Records({ file: database.location() ?? '', database, clock: { now } });
  const runs = createRunStore(records);
  const trials = createTrialStore(records);
  return {
    runs,
    trials,
    keys: createKeyStore(records),
    openRuns: createOpenRunStore(records, runs, trials),
    baselines: createBaselineStore(records, runs, isAudited),
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

interface CasePlace {
  suiteId: string;
  caseId: string;
}

export interface ListedCase extends CasePlace {
  /** JSON. */
  entry: string;
}

/** The cases of started runs. */
function createCaseStore(records: Records) {
  return {
    /**
     * The next entries, ordered by suite and case id; of one suite, if it is given. With `after`, those after
     * that entry: no id is empty.
     */
    list(
      organization: number,
      suiteId: string | undefined,
      after: CasePlace = { suiteId: '', caseId: '' },
    ): ListedCase[] {
      const [condition, place] =
        suiteId === undefined
          ? ['(suite_id, case_id) > (?, ?)', after.suiteId]
          : ['suite_id = ? AND case_id > ?', suiteId];
      const query = `SELECT suite_id, case_id, entry FROM cases WHERE organization = ? AND ${condition}
        ORDER BY suite_id, case_id LIMIT ${serviceRequests.count.cases}`;
      return records.select<ListedCase>(query, organization, place, after.caseId);
    },
  };
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
