import type { DatabaseSync } from 'node:sqlite';
import { serviceRequests } from '../../bounds/callers.ts';
import type { Case, Suite, Trigger } from '../../contract/definition.ts';
import type { RunVariant } from '../../contract/record.ts';
import { inTransaction } from '../../ledger/database.ts';
import { inCode } from '../../ledger/records.ts';
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

export interface AddedRun {
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
export function createBatchStore(database: DatabaseSync) {
  const definitions = readsDefinitions(database);
  const insertBatch = database.prepare(
    `INSERT INTO batches (id, organization, suite, suite_name, trials, local, trigger, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const beginBatch = database.prepare('INSERT INTO unlisted_batches (batch, since) VALUES (?, ?)');
  const endBatch = database.prepare('DELETE FROM unlisted_batches WHERE batch = ?');
  const selectUnlisted = database.prepare('SELECT batch FROM unlisted_batches WHERE since < ?');
  const removeBatch = [
    'batch_cases WHERE batch',
    'runs WHERE batch',
    'batches WHERE key',
    'unlisted_batches WHERE batch',
  ].map((rows) => database.prepare(`DELETE FROM ${rows} = ?`));
  const insertCase = database.prepare(
    'INSERT INTO batch_cases (batch, case_name, definition) VALUES (?, ?, ?)',
  );
  const rememberCase = database.prepare(
    `INSERT INTO cases (organization, suite_id, case_id, entry) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET entry = excluded.entry`,
  );
  const insertRun = database.prepare(
    `INSERT INTO runs (id, organization, batch, batch_case, task_index, case_id, variant_id, model, variant,
       definition_hash, local, trials, started_at, suite_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const openRun = database.prepare('INSERT INTO open_runs (run) VALUES (?)');
  const countRun = database.prepare(
    `INSERT INTO run_lists (organization, case_id, filter, value, total) VALUES (?, ?, ?, ?, 1)
     ON CONFLICT DO UPDATE SET total = total + 1 RETURNING key, total`,
  );
  const listRun = database.prepare('INSERT INTO listed_runs (list, position, run) VALUES (?, ?, ?)');
  const selectCell = database.prepare(
    `SELECT runs.batch, runs.batch_case AS batchCase, runs.variant, runs.definition_hash AS definitionHash,
       batches.local, batches.trials, batches.suite_name,
       (SELECT max(task_index) + 1 FROM runs AS others WHERE others.batch = runs.batch) AS nextTaskIndex
     FROM batches JOIN runs ON runs.batch = batches.key
     WHERE batches.id = ? AND batches.organization = ? AND runs.case_id = ? AND runs.variant_id = ?
     ORDER BY runs.key DESC LIMIT 1`,
  );
  const selectCells = database.prepare(
    `SELECT DISTINCT runs.case_id AS caseId, runs.variant_id AS variantId
     FROM batches JOIN runs ON runs.batch = batches.key WHERE batches.id = ? AND batches.organization = ?
     ORDER BY runs.task_index`,
  );

  return {
    /** Nobody sees it before `listBatch`. */
    addBatch({ organization, suite, trials, local, trigger, now }: NewBatch): { key: number; id: string } {
      const id = newIdentifier('batch');
      const suiteName = JSON.stringify({ id: suite.id, name: suite.name });
      const triggerText = trigger ? JSON.stringify({ source: 'api', ...trigger }) : null;
      const { lastInsertRowid } = insertBatch.run(
        id,
        organization,
        JSON.stringify(suite),
        suiteName,
        trials,
        Number(local),
        triggerText,
        now,
      );
      beginBatch.run(lastInsertRowid, now);
      return { key: Number(lastInsertRowid), id };
    },
    /** Keeps a batch whose runs are listed. */
    listBatch({ key }: { key: number }): void {
      endBatch.run(key);
    },
    /** Removes batches that were begun before this time and never listed: a process ended meanwhile. */
    removeUnlisted(before: number): void {
      const unlisted = selectUnlisted.all(before);
      if (unlisted.length === 0) return;
      // For each run, SQLite would look for references in all lists.
      database.exec('PRAGMA foreign_keys = OFF');
      for (const { batch } of unlisted) {
        inTransaction(database, () => {
          for (const remove of removeBatch) remove.run(batch ?? null);
        });
      }
      database.exec('PRAGMA foreign_keys = ON');
    },
    /** Adds a case with the JSON text of its definition. Nobody sees it before `listCase`. */
    addCase({ key }: { key: number }, { id, name }: Case, definition: string): number {
      const { lastInsertRowid } = insertCase.run(key, JSON.stringify({ id, name }), definition);
      return Number(lastInsertRowid);
    },
    /** Stores the case for `evals.cases.list`: the latest definition wins. */
    listCase(organization: number, suite: Suite, { id, name, tags }: Case): void {
      const entry = { id, name, suite: { id: suite.id, name: suite.name }, tags };
      rememberCase.run(organization, suite.id, id, JSON.stringify(entry));
    },
    /** Adds a queued run. Nobody sees it before `listRun`. */
    addRun({ organization, caseId, variant, ...run }: NewRun): AddedRun {
      const id = runIdentifier(run.batch.id, run.taskIndex);
      const { lastInsertRowid } = insertRun.run(
        id,
        organization,
        run.batch.key,
        run.batchCase,
        run.taskIndex,
        caseId,
        variant.id,
        variant.model,
        JSON.stringify(variant),
        run.definitionHash,
        Number(run.local),
        run.trials,
        run.now,
        run.local ? null : run.suiteId,
      );
      return { key: Number(lastInsertRowid), id };
    },
    /** Adds a run to the end of its lists. A run that is not local is open then. */
    listRun(
      organization: number,
      { key, caseId, variant, local }: AddedRun & Pick<NewRun, 'caseId' | 'variant' | 'local'>,
    ): void {
      if (!local) openRun.run(key);
      const lists: Record<RunFilter, string> = { all: '', variant: variant.id, model: variant.model };
      for (const [filter, value] of Object.entries(lists)) {
        const list = countRun.get(organization, caseId, filter, value);
        listRun.run(Number(list?.key), Number(list?.total) - 1, key);
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
      const row = selectCell.get(batchId, organization, caseId, variantId);
      if (!row) return undefined;
      return {
        batch: { key: Number(row.batch), id: batchId },
        batchCase: Number(row.batchCase),
        suiteId: JSON.parse(String(row.suite_name)).id,
        get suite() {
          return definitions.suite(Number(row.batch));
        },
        get case() {
          return definitions.case(Number(row.batchCase));
        },
        variant: JSON.parse(String(row.variant)),
        definitionHash: String(row.definitionHash),
        local: row.local === 1,
        trials: Number(row.trials),
        nextTaskIndex: Number(row.nextTaskIndex),
      };
    },

    /** The cells of a batch; none if there is no such batch. */
    cells(organization: number, batchId: string): { caseId: string; variantId: string }[] {
      return selectCells.all(batchId, organization).map(({ caseId, variantId }) => {
        return { caseId: String(caseId), variantId: String(variantId) };
      });
    },
  };
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
export function createCaseStore(database: DatabaseSync) {
  const columns = 'SELECT suite_id, case_id, entry FROM cases WHERE organization = ?';
  const ofAll = database.prepare(
    `${columns} AND (suite_id, case_id) > (?, ?) ORDER BY suite_id, case_id LIMIT ${serviceRequests.count.cases}`,
  );
  const ofSuite = database.prepare(
    `${columns} AND suite_id = ? AND case_id > ? ORDER BY case_id LIMIT ${serviceRequests.count.cases}`,
  );

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
      const rows =
        suiteId === undefined
          ? ofAll.all(organization, after.suiteId, after.caseId)
          : ofSuite.all(organization, suiteId, after.caseId);
      return rows.map((row) => inCode<ListedCase>(row));
    },
  };
}
