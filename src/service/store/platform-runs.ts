import type { DatabaseSync } from 'node:sqlite';
import type { Baseline } from '../../contract/catalog.ts';
import type { Costs } from '../../contract/record.ts';
import { inCode } from '../../ledger/records.ts';
import type { OpenPlatformRun } from '../platform.ts';
import { setupOf } from '../record/setup.ts';
import { keyOf, keysOfRun, lastRead, readsDefinitions } from './runs.ts';

/** What a completed trial has in addition to a reported one. */
export interface CompletedFacts {
  harnessVersion: string | undefined;
  profileVersion: string | undefined;
  costs: Costs | undefined;
}

export interface PlatformRun {
  key: number;
  taskIndex: number;
  caseName: string;
  model: string;
  trials: number;
}

/** Columns of {@link CompletedFacts}. */
const factColumns = 'harness_version, profile_version, costs';

/** The runs that the platform itself runs, of all organizations. */
export function createPlatformStore(database: DatabaseSync) {
  const selectOpen = database.prepare('SELECT run FROM open_runs ORDER BY run');
  const selectId = database.prepare('SELECT id FROM runs WHERE key = ?');
  const selectDetails = database.prepare(
    `SELECT runs.batch, runs.batch_case, runs.task_index, runs.variant, runs.trials, batches.id AS batchId
     FROM runs JOIN batches ON batches.key = runs.batch WHERE runs.key = ?`,
  );
  const definitions = readsDefinitions(database);
  const selectEnded = database.prepare(
    `SELECT key FROM trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
  );
  const selectRun = database.prepare(
    `SELECT runs.key, runs.task_index, runs.model, runs.trials, batch_cases.case_name
     FROM runs JOIN batch_cases ON batch_cases.key = runs.batch_case WHERE runs.id = ? AND runs.local = 0`,
  );
  const insert = database.prepare(
    'INSERT INTO completed_trials (key, harness_version, profile_version, costs) VALUES (?, ?, ?, ?)',
  );
  const close = database.prepare('DELETE FROM open_runs WHERE run = ?');
  const selectFacts = database.prepare(
    `SELECT ${factColumns} FROM completed_trials
     WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
  );

  /** The ids of the open runs, by their keys. Kept, because reading many ids takes most of the time. */
  let ids = new Map<number, string>();

  return {
    /** Oldest first, without those whose ids are in `known`. */
    openRuns(known: ReadonlySet<string>): OpenPlatformRun[] {
      const keys = selectOpen.all().map(({ run }) => Number(run));
      ids = new Map(keys.map((key) => [key, ids.get(key) ?? String(selectId.get(key)?.id)]));
      const unknown = [...ids].filter(([, id]) => !known.has(id));
      // Runs of one case are next to one another, and share its texts.
      const suites = lastRead(definitions.suite);
      const cases = lastRead(definitions.case);
      const setups = lastRead((key, batch: number) => setupOf(suites(batch), cases(key)));
      return unknown.map(([key, id]) => {
        const row = selectDetails.get(key) ?? {};
        const batch = Number(row.batch);
        const batchCase = Number(row.batch_case);
        return {
          id,
          batchId: String(row.batchId),
          taskIndex: Number(row.task_index),
          get suite() {
            return suites(batch);
          },
          get case() {
            return cases(batchCase);
          },
          get setup() {
            return setups(batchCase, batch);
          },
          variant: JSON.parse(String(row.variant)),
          trials: Number(row.trials),
          ended: selectEnded.all(key).map((trial) => Number(trial.key) - keyOf(key, 0)),
        };
      });
    },
    /** A platform run by its id; undefined if there is none. */
    find(runId: string): PlatformRun | undefined {
      const row = selectRun.get(runId);
      return row && { ...inCode<PlatformRun>(row), caseName: JSON.parse(String(row.case_name)).name };
    },
    /** Adds what a completed trial has besides its row among the trials, which must be there. */
    complete(run: number, ordinal: number, { harnessVersion, profileVersion, costs }: CompletedFacts): void {
      const texts = [harnessVersion, profileVersion, costs].map((value) =>
        value === undefined ? null : JSON.stringify(value),
      );
      insert.run(keyOf(run, ordinal), ...texts);
    },
    /** Marks a run as no longer open. */
    close(run: number): void {
      close.run(run);
    },
    /** The facts of a run's completed trials, by ordinal. */
    facts: (run: number): CompletedFacts[] => selectFacts.all(run).map(factsOf),
  };
}

function factsOf(row: Record<string, unknown>): CompletedFacts {
  const value = (column: string) => {
    const text = row[column];
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  };
  return {
    harnessVersion: value('harness_version'),
    profileVersion: value('profile_version'),
    costs: value('costs'),
  };
}

/** A cell of a case with an ended trial that counts. */
export interface BaselineCell extends Pick<Baseline, 'suite' | 'case' | 'variant' | 'definitionHash'> {
  /** The newest run with such a trial, which gives the other fields. */
  newest: number;
}

export interface BaselineRunRow {
  key: number;
  id: string;
  batchId: string;
  /** Epoch milliseconds. */
  startedAt: number;
  trials: number;
  /** Whether its trials were reported. Only those whose evidence was graded again here count. */
  local: boolean;
}

/**
 * What baselines are made of: the platform runs of a cell, and, if the owner says so, reported runs with
 * trials whose evidence was graded again here.
 *
 * @param isAudited whether reported runs count, too
 */
export function createBaselineStore(database: DatabaseSync, isAudited: boolean) {
  const of = 'FROM runs WHERE organization = ? AND case_id = ?';
  // Each kind of run has an index of its own. A reported run has a suite's id once a trial of it counts.
  const kinds = (isAudited ? ['platform', 'reported'] : ['platform']).map((kind) => {
    const isKind = kind === 'platform' ? 'local = 0' : 'local = 1 AND suite_id IS NOT NULL';
    const hasEnded =
      kind === 'platform'
        ? `EXISTS (SELECT 1 FROM completed_trials AS ended WHERE ended.key BETWEEN ${keysOfRun('runs.key')})`
        : 'true';
    const ofCell = `${of} AND suite_id = ? AND variant_id = ? AND ${isKind}`;
    return {
      cells: database.prepare(
        `SELECT DISTINCT suite_id, variant_id ${of} AND suite_id IS NOT NULL AND ${isKind}`,
      ),
      newest: database.prepare(`SELECT key ${ofCell} AND ${hasEnded} ORDER BY key DESC LIMIT 1`),
      runs: database.prepare(
        `SELECT runs.key, runs.id, runs.started_at, runs.trials, runs.local,
           (SELECT id FROM batches WHERE batches.key = runs.batch) AS batch_id
         ${ofCell} AND definition_hash = ? AND ${hasEnded} ORDER BY key DESC LIMIT ?`,
      ),
      countDefinition: database.prepare(`SELECT count(*) AS runs ${ofCell} AND definition_hash = ?`),
      countAll: database.prepare(`SELECT count(*) AS runs ${ofCell}`),
    };
  });
  const selectNames = database.prepare(
    `SELECT runs.variant, runs.definition_hash, batches.suite_name, batch_cases.case_name
     FROM runs JOIN batches ON batches.key = runs.batch JOIN batch_cases ON batch_cases.key = runs.batch_case
     WHERE runs.key = ?`,
  );
  const idsOf = (organization: number, cell: BaselineCell) =>
    [organization, cell.case.id, cell.suite.id, cell.variant.id] as const;
  const sum = (numbers: unknown[]) => numbers.reduce((all: number, one) => all + Number(one), 0);

  return {
    /** The newest first; of one suite, if it is given. */
    cells(
      organization: number,
      { caseId, suiteId }: { caseId: string; suiteId: string | undefined },
    ): BaselineCell[] {
      const newest = new Map<string, number>();
      for (const { cells, newest: select } of kinds)
        for (const row of cells.all(organization, caseId)) {
          if (suiteId !== undefined && row.suite_id !== suiteId) continue;
          const ids = [String(row.suite_id), String(row.variant_id)] as const;
          const found = Number(select.get(organization, caseId, ...ids)?.key ?? 0);
          const cell = JSON.stringify(ids);
          if (found > (newest.get(cell) ?? 0)) newest.set(cell, found);
        }
      return [...newest.values()]
        .sort((one, other) => other - one)
        .map((newest) => {
          const row = selectNames.get(newest);
          return {
            newest,
            suite: JSON.parse(String(row?.suite_name)),
            case: JSON.parse(String(row?.case_name)),
            variant: JSON.parse(String(row?.variant)),
            definitionHash: String(row?.definition_hash),
          };
        });
    },
    /** The runs of the cell's definition that have a trial that counts, newest first. */
    runs: (organization: number, cell: BaselineCell, limit: number): BaselineRunRow[] =>
      kinds
        .flatMap(({ runs }) => runs.all(...idsOf(organization, cell), cell.definitionHash, limit))
        .map((row) => ({ ...inCode<BaselineRunRow>(row), local: row.local === 1 }))
        .sort((one, other) => other.key - one.key)
        .slice(0, limit),
    /** How many such runs the cell has, ended or not. */
    counts(organization: number, cell: BaselineCell): { sameDefinition: number; all: number } {
      const ids = idsOf(organization, cell);
      return {
        sameDefinition: sum(
          kinds.map(({ countDefinition }) => countDefinition.get(...ids, cell.definitionHash)?.runs),
        ),
        all: sum(kinds.map(({ countAll }) => countAll.get(...ids)?.runs)),
      };
    },
  };
}
