import { serviceRequests } from '../../bounds/callers.ts';
import type { Case, Suite, Trigger } from '../../contract/definition.ts';
import type { RunVariant } from '../../contract/record.ts';
import type { Records } from '../../ledger/records.ts';
import { newIdentifier, runIdentifier } from '../identifiers.ts';
import { type RunFilter, readsDefinitions } from './runs.ts';

export interface NewBatch {
  organization: number;
  suite: Suite;
  trials: number;
  local: boolean;
  trigger: Trigger | undefined;
  now: number;
}

export interface NewRun {
  organization: number;
  batch: { key: number; id: string };
  batchCase: number;
  taskIndex: number;
  suiteId: string;
  caseId: string;
  variant: RunVariant;
  definitionHash: string;
  local: boolean;
  trials: number;
  now: number;
}

export interface AddedRun extends NewRun {
  key: number;
  id: string;
}

export interface Cell {
  batch: { key: number; id: string };
  batchCase: number;
  suiteId: string;
  /** Read each time: they may be long, and only a batch of the platform needs them. */
  readonly suite: Suite;
  readonly case: Case;
  variant: RunVariant;
  definitionHash: string;
  local: boolean;
  /** The number of trials of the batch. */
  trials: number;
  nextTaskIndex: number;
}

/**
 * What `evals.start` and `evals.rerunCell` write. Code refers to rows by their keys; identifiers are for the
 * wire.
 */
export function createBatchStore(records: Records) {
  const definitions = readsDefinitions(records);
  return {
    /** Nobody sees it before `listBatch`. */
    addBatch({ suite, local, trigger, now, ...batch }: NewBatch): { key: number; id: string } {
      const id = newIdentifier('batch');
      const key = records.insert('batches', {
        ...batch,
        id,
        suite: JSON.stringify(suite),
        suiteName: JSON.stringify({ id: suite.id, name: suite.name }),
        local: Number(local),
        trigger: trigger && JSON.stringify({ source: 'api', ...trigger }),
        createdAt: now,
      });
      records.insert('unlisted_batches', { batch: key, since: now });
      return { key, id };
    },
    /** Keeps a batch whose runs are listed. */
    listBatch({ key }: { key: number }): void {
      records.run('DELETE FROM unlisted_batches WHERE batch = ?', key);
    },
    /** Removes batches that were begun before this time and never listed: a process ended meanwhile. */
    removeUnlisted(before: number): void {
      const unlisted = records.all('SELECT batch FROM unlisted_batches WHERE since < ?', before);
      if (unlisted.length === 0) return;
      // For each run, SQLite would look for references in all lists.
      records.run('PRAGMA foreign_keys = OFF');
      for (const { batch } of unlisted) {
        records.transaction(() => {
          for (const rows of ['batch_cases WHERE batch', 'runs WHERE batch', 'batches WHERE key'])
            records.run(`DELETE FROM ${rows} = ?`, Number(batch));
          this.listBatch({ key: Number(batch) });
        });
      }
      records.run('PRAGMA foreign_keys = ON');
    },
    /** Adds a case with the JSON text of its definition. Nobody sees it before `listCase`. */
    addCase({ key }: { key: number }, { id, name }: Case, definition: string): number {
      return records.insert('batch_cases', {
        batch: key,
        caseName: JSON.stringify({ id, name }),
        definition,
      });
    },
    /** Stores the case for `evals.cases.list`: the latest definition wins. */
    listCase(organization: number, suite: Suite, { id, name, tags }: Case): void {
      const entry = { id, name, suite: { id: suite.id, name: suite.name }, tags };
      const query = `INSERT INTO cases (organization, suite_id, case_id, entry) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET entry = excluded.entry`;
      records.run(query, organization, suite.id, id, JSON.stringify(entry));
    },
    /** Adds a queued run. Nobody sees it before `listRun`. */
    addRun(run: NewRun): AddedRun {
      const { batch, variant, suiteId, local, now, ...same } = run;
      const id = runIdentifier(batch.id, run.taskIndex);
      const key = records.insert('runs', {
        ...same,
        id,
        batch: batch.key,
        variantId: variant.id,
        model: variant.model,
        variant: JSON.stringify(variant),
        local: Number(local),
        startedAt: now,
        suiteId: local ? undefined : suiteId,
      });
      return { ...run, key, id };
    },
    /** Adds a run to the end of its lists. A run that is not local is open then. */
    listRun({ organization, key, caseId, variant, local }: AddedRun): void {
      if (!local) records.insert('open_runs', { run: key });
      const lists: Record<RunFilter, string> = { all: '', variant: variant.id, model: variant.model };
      for (const [filter, value] of Object.entries(lists)) {
        const query = `INSERT INTO run_lists (organization, case_id, filter, value, total) VALUES (?, ?, ?, ?, 1)
          ON CONFLICT DO UPDATE SET total = total + 1 RETURNING key, total`;
        const list = records.get(query, organization, caseId, filter, value);
        const place = [Number(list?.key), Number(list?.total) - 1, key];
        records.run('INSERT INTO listed_runs (list, position, run) VALUES (?, ?, ?)', ...place);
      }
    },
    /**
     * The newest run of a cell and what a rerun needs; undefined if the batch or the cell is not the
     * organization's.
     */
    findCell(
      organization: number,
      { batchId, caseId, variantId }: { batchId: string; caseId: string; variantId: string },
    ): Cell | undefined {
      const query = `SELECT runs.batch, runs.batch_case, runs.variant, runs.definition_hash, batches.local,
           batches.trials, batches.suite_name,
           (SELECT max(task_index) + 1 FROM runs AS others WHERE others.batch = runs.batch) AS next_task_index
         FROM batches JOIN runs ON runs.batch = batches.key
         WHERE batches.id = ? AND batches.organization = ? AND runs.case_id = ? AND runs.variant_id = ?
         ORDER BY runs.key DESC LIMIT 1`;
      const [row] = records.select<StoredCell>(query, batchId, organization, caseId, variantId);
      if (!row) return undefined;
      const { batch, suiteName, variant, local, ...cell } = row;
      return {
        ...cell,
        batch: { key: batch, id: batchId },
        suiteId: JSON.parse(suiteName).id,
        get suite() {
          return definitions.suite(batch);
        },
        get case() {
          return definitions.case(cell.batchCase);
        },
        variant: JSON.parse(variant),
        local: local === 1,
      };
    },
    /** The cells of a batch; none if there is no such batch. */
    cells(organization: number, batchId: string): { caseId: string; variantId: string }[] {
      const query = `SELECT DISTINCT runs.case_id, runs.variant_id
         FROM batches JOIN runs ON runs.batch = batches.key
         WHERE batches.id = ? AND batches.organization = ? ORDER BY runs.task_index`;
      return records.select(query, batchId, organization);
    },
  };
}

interface StoredCell extends Pick<Cell, 'batchCase' | 'definitionHash' | 'trials' | 'nextTaskIndex'> {
  batch: number;
  /** JSON. */
  suiteName: string;
  variant: string;
  local: number;
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
export function createCaseStore(records: Records) {
  return {
    /**
     * JSON texts of the next entries, ordered by suite and case id; of one suite, if it is given. With
     * `after`, those after that entry: no id is empty.
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
