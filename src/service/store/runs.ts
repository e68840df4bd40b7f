import type { Case, StartRequest, Suite } from '../../contract/definition.ts';
import type { RunRecord, RunVariant } from '../../contract/record.ts';
import type { Records, Value } from '../../ledger/records.ts';
import { newIdentifier, runIdentifier } from '../identifiers.ts';

/**
 * A run, with what is short of its batch and its case. Code refers to rows by their keys; ids are for the
 * wire.
 */
export interface Run {
  key: number;
  id: string;
  batch: number;
  batchId: string;
  batchCase: number;
  /** Its place in its batch, from 0. */
  taskIndex: number;
  suite: { id: string; name: string };
  case: { id: string; name: string };
  variant: RunVariant;
  trigger: RunRecord['trigger'];
  definitionHash: string;
  local: boolean;
  trials: number;
  /** Epoch milliseconds. */
  startedAt: number;
}

/** A batch that is written: see `begin`. */
export interface NewBatch {
  /**
   * Adds cases, each with the JSON text of its definition, and the run of each variant. Nobody sees them yet.
   */
  add(cases: readonly { case: Case; definition: string; hash: (variantIndex: number) => string }[]): void;
  /** Puts all that was added into the lists from which it is read. Returns the batch's id, and its runs. */
  list(): { id: string; runs: (Run & { variantIndex: number })[] };
}

export type RunStore = ReturnType<typeof createRunStore>;

/** Batches and their runs: what `evals.start` and `evals.rerunCell` write. */
export function createRunStore(records: Records) {
  const columns = `SELECT runs.key, runs.id, runs.batch, runs.batch_case, runs.task_index, runs.variant,
      runs.definition_hash, runs.local, runs.trials, runs.started_at, batches.id AS batch_id,
      batches.suite_name AS suite, batches.trigger, batch_cases.case_name AS "case"
    FROM runs JOIN batches ON batches.key = runs.batch JOIN batch_cases ON batch_cases.key = runs.batch_case`;

  function one(condition: string, ...values: Value[]): Run | undefined {
    const [row] = records.select<Run>(`${columns} WHERE ${condition}`, ...values);
    if (!row) return undefined;
    const [suite, of, variant, trigger] = [row.suite, row.case, row.variant, row.trigger].map(jsonIn);
    return { ...row, suite, case: of, variant, trigger, local: Boolean(row.local) };
  }

  /** Adds a queued run. Nobody sees it before it is listed. */
  function add(organization: number, run: Omit<Run, 'key' | 'id'>): Run {
    const { variant, local, batch, batchCase, taskIndex, definitionHash, trials, startedAt } = run;
    const id = runIdentifier(run.batchId, taskIndex);
    const key = records.insert('runs', {
      id,
      organization,
      batch,
      batchCase,
      taskIndex,
      caseId: run.case.id,
      variantId: variant.id,
      model: variant.model,
      variant: JSON.stringify(variant),
      definitionHash,
      local: Number(local),
      trials,
      startedAt,
      suiteId: local ? undefined : run.suite.id,
    });
    return { ...run, key, id };
  }

  /** Adds a run to the end of its lists. A run that is not local is open then. */
  function list(organization: number, { key, case: { id: caseId }, variant, local }: Run): void {
    if (!local) records.insert('open_runs', { run: key });
    const lists: Record<RunFilter, string> = { all: '', variant: variant.id, model: variant.model };
    for (const [filter, value] of Object.entries(lists)) {
      const query = `INSERT INTO run_lists (organization, case_id, filter, value, total) VALUES (?, ?, ?, ?, 1)
        ON CONFLICT DO UPDATE SET total = total + 1 RETURNING key, total`;
      const list = records.get(query, organization, caseId, filter, value);
      const place = [Number(list?.key), Number(list?.total) - 1, key];
      records.run('INSERT INTO listed_runs (list, position, run) VALUES (?, ?, ?)', ...place);
    }
  }

  return {
    read(key: number): Run {
      const run = one('runs.key = ?', key);
      if (!run) throw new Error(`run ${key} is listed but not there`);
      return run;
    },
    /** A run of an organization by its own id, or by its batch's id and its index in the batch. */
    find: (organization: number, id: string, taskIndex?: number): Run | undefined =>
      one('runs.id = ? AND runs.organization = ?', id, organization) ??
      (taskIndex === undefined
        ? undefined
        : one(
            'batches.id = ? AND runs.organization = ? AND runs.task_index = ?',
            id,
            organization,
            taskIndex,
          )),
    /** A run of the platform, of any organization. */
    findPlatformRun: (id: string): Run | undefined => one('runs.id = ? AND runs.local = 0', id),
    /** The newest run of a cell; undefined if the batch or the cell is not the organization's. */
    ofCell: (organization: number, { batchId, caseId, variantId }: CellName): Run | undefined =>
      one(
        `batches.id = ? AND batches.organization = ? AND runs.case_id = ? AND runs.variant_id = ?
         ORDER BY runs.key DESC LIMIT 1`,
        ...[batchId, organization, caseId, variantId],
      ),
    /** The cells of a batch; none if there is no such batch. */
    cells: (organization: number, batchId: string) =>
      records.select<Pick<CellName, 'caseId' | 'variantId'>>(
        `SELECT DISTINCT runs.case_id, runs.variant_id FROM batches JOIN runs ON runs.batch = batches.key
         WHERE batches.id = ? AND batches.organization = ? ORDER BY runs.task_index`,
        ...[batchId, organization],
      ),
    /** How many trials the runs of a batch have if nothing else is said. */
    trialsOf: (batch: number) =>
      Number(records.get('SELECT trials FROM batches WHERE key = ?', batch)?.trials),
    /** As they were sent: a run's setup follows from them. They may be long. */
    definitions: {
      suite: (batch: number): Suite =>
        jsonIn(records.get('SELECT suite FROM batches WHERE key = ?', batch)?.suite),
      case: (key: number): Case =>
        jsonIn(records.get('SELECT definition FROM batch_cases WHERE key = ?', key)?.definition),
    },
    /** Queues another run of the same cell, for `trials` trials. */
    rerun(organization: number, run: Run, trials: number, now: number): Run {
      const query = 'SELECT max(task_index) + 1 AS next FROM runs WHERE batch = ?';
      const taskIndex = Number(records.get(query, run.batch)?.next);
      const added = add(organization, { ...run, taskIndex, trials, startedAt: now });
      list(organization, added);
      return added;
    },
    /** Begins a batch. Each call of what it returns writes, so it needs a transaction. */
    begin(
      organization: number,
      request: StartRequest,
      variants: readonly RunVariant[],
      now: number,
    ): NewBatch {
      const { suite: whole, cases, trials, local = false, trigger: sent } = request;
      const suite = { id: whole.id, name: whole.name };
      const trigger = sent && { source: 'api', ...sent };
      const batchId = newIdentifier('batch');
      const runs: (Run & { variantIndex: number })[] = [];
      const addBatch = () => {
        const batch = records.insert('batches', {
          id: batchId,
          organization,
          suite: JSON.stringify(whole),
          suiteName: JSON.stringify(suite),
          trials,
          local: Number(local),
          trigger: trigger && JSON.stringify(trigger),
          createdAt: now,
        });
        records.insert('unlisted_batches', { batch, since: now });
        return batch;
      };
      let batch: number | undefined;
      return {
        add(added) {
          batch ??= addBatch();
          for (const {
            case: { id, name },
            definition,
            hash,
          } of added) {
            const caseName = JSON.stringify({ id, name });
            const batchCase = records.insert('batch_cases', { batch, caseName, definition });
            const same = { batch, batchId, batchCase, suite, case: { id, name }, trigger, local, trials };
            for (const [variantIndex, variant] of variants.entries()) {
              const definitionHash = hash(variantIndex);
              const run = { ...same, variant, definitionHash, taskIndex: runs.length, startedAt: now };
              runs.push({ ...add(organization, run), variantIndex });
            }
          }
        },
        list() {
          for (const { id, name, tags } of cases) {
            // The latest definition wins.
            const query = `INSERT INTO cases (organization, suite_id, case_id, entry) VALUES (?, ?, ?, ?)
              ON CONFLICT DO UPDATE SET entry = excluded.entry`;
            records.run(query, organization, suite.id, id, JSON.stringify({ id, name, suite, tags }));
          }
          for (const run of runs) list(organization, run);
          records.run('DELETE FROM unlisted_batches WHERE batch = ?', batch ?? null);
          return { id: batchId, runs };
        },
      };
    },
    /** Removes batches that were begun before this time and never listed: a process ended meanwhile. */
    removeUnlisted(before: number): void {
      const unlisted = records.all('SELECT batch FROM unlisted_batches WHERE since < ?', before);
      if (unlisted.length === 0) return;
      // For each run, SQLite would look for references in all lists.
      records.run('PRAGMA foreign_keys = OFF');
      const tables = ['batch_cases WHERE batch', 'runs WHERE batch', 'batches WHERE key'];
      for (const { batch } of unlisted)
        records.transaction(() => {
          for (const rows of [...tables, 'unlisted_batches WHERE batch'])
            records.run(`DELETE FROM ${rows} = ?`, Number(batch));
        });
      records.run('PRAGMA foreign_keys = ON');
    },
    /**
     * The keys of the runs of one page, newest first. A page is read by the positions of its runs, so that a
     * late one costs as much as the first one.
     *
     * @param list `variant` is a variant's id or, if the case has no such variant, a model
     */
    page(
      organization: number,
      {
        caseId,
        variant,
        offset,
        limit,
      }: { caseId: string; variant?: string | undefined; offset: number; limit: number },
    ): { total: number; keys: number[] } {
      const lists = `SELECT key, total FROM run_lists
        WHERE organization = ? AND case_id = ? AND filter = ? AND value = ?`;
      const listOf = (filter: RunFilter, value: string) =>
        records.get(lists, organization, caseId, filter, value);
      const found =
        variant === undefined ? listOf('all', '') : (listOf('variant', variant) ?? listOf('model', variant));
      const total = Number(found?.total ?? 0);
      // An offset far past the end may not be an integer that SQLite accepts.
      if (!found || offset >= total) return { total, keys: [] };
      // Another process may add runs now, but that changes no position.
      const newest = total - offset - 1;
      const runs = `SELECT run FROM listed_runs WHERE list = ? AND position BETWEEN ? AND ?
        ORDER BY position DESC`;
      const rows = records.all(runs, Number(found.key), newest - limit + 1, newest);
      return { total, keys: rows.map(({ run }) => Number(run)) };
    },
  };
}

/** The runs that a list has: all of a case, those of one variant, or those of one model. */
type RunFilter = 'all' | 'variant' | 'model';

export interface CellName {
  batchId: string;
  caseId: string;
  variantId: string;
}

/** The value of JSON that the service wrote itself, mostly to a column; undefined if there is none. */
export function jsonIn(text: unknown) {
  return typeof text === 'string' ? JSON.parse(text) : undefined;
}

/** Keeps the value that was read last. All of them together may not fit into memory. */
export function lastRead<More extends unknown[], Value>(
  read: (key: number, ...more: More) => Value,
): (key: number, ...more: More) => Value {
  let last: { key: number; value: Value } | undefined;
  return (key, ...more) => {
    if (last?.key !== key) {
      // The value before it can be collected while the next one is made.
      last = undefined;
      last = { key, value: read(key, ...more) };
    }
    return last.value;
  };
}
