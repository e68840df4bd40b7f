import type { Baseline } from '../../contract/catalog.ts';
import type { Costs } from '../../contract/record.ts';
import { inCode, type Records } from '../../ledger/records.ts';
import type { OpenPlatformRun } from '../platform.ts';
import { setupOf } from '../record/setup.ts';
import { jsonIn, keyOf, keysOfRun, lastRead, readsDefinitions } from './runs.ts';

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

/** The runs that the platform itself runs, of all organizations. */
export function createPlatformStore(records: Records) {
  const definitions = readsDefinitions(records);
  /** The ids of the open runs, by their keys. Kept, because reading many ids takes most of the time. */
  let ids = new Map<number, string>();

  return {
    /** Oldest first, without those whose ids are in `known`. */
    openRuns(known: ReadonlySet<string>): OpenPlatformRun[] {
      const keys = records.all('SELECT run FROM open_runs ORDER BY run').map(({ run }) => Number(run));
      const idOf = (key: number) => String(records.get('SELECT id FROM runs WHERE key = ?', key)?.id);
      ids = new Map(keys.map((key) => [key, ids.get(key) ?? idOf(key)]));
      const unknown = [...ids].filter(([, id]) => !known.has(id));
      // Runs of one case are next to one another, and share its texts.
      const suites = lastRead(definitions.suite);
      const cases = lastRead(definitions.case);
      const setups = lastRead((key, batch: number) => setupOf(suites(batch), cases(key)));
      return unknown.map(([key, id]) => {
        const row = records.get(
          `SELECT runs.batch, runs.batch_case, runs.task_index, runs.variant, runs.trials, batches.id AS batch_id
           FROM runs JOIN batches ON batches.key = runs.batch WHERE runs.key = ?`,
          key,
        );
        const { batch, batchCase, variant, ...run } = inCode<StoredRun>(row ?? {});
        const ended = `SELECT key FROM trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`;
        return {
          ...run,
          id,
          get suite() {
            return suites(batch);
          },
          get case() {
            return cases(batchCase);
          },
          get setup() {
            return setups(batchCase, batch);
          },
          variant: jsonIn(variant),
          ended: records.all(ended, key).map((trial) => Number(trial.key) - keyOf(key, 0)),
        };
      });
    },
    /** A platform run by its id; undefined if there is none. */
    find(runId: string): PlatformRun | undefined {
      const row = records.get(
        `SELECT runs.key, runs.task_index, runs.model, runs.trials, batch_cases.case_name
         FROM runs JOIN batch_cases ON batch_cases.key = runs.batch_case
         WHERE runs.id = ? AND runs.local = 0`,
        runId,
      );
      return row && { ...inCode<PlatformRun>(row), caseName: jsonIn(row.case_name).name };
    },
    /** Adds what a completed trial has besides its row among the trials, which must be there. */
    complete(run: number, ordinal: number, facts: CompletedFacts): void {
      const text = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value));
      const { harnessVersion, profileVersion, costs } = facts;
      records.insert('completed_trials', {
        key: keyOf(run, ordinal),
        harnessVersion: text(harnessVersion),
        profileVersion: text(profileVersion),
        costs: text(costs),
      });
    },
    /** Marks a run as no longer open. */
    close(run: number): void {
      records.run('DELETE FROM open_runs WHERE run = ?', run);
    },
    /** The facts of a run's completed trials, by ordinal. */
    facts(run: number): CompletedFacts[] {
      const rows = records.all(
        `SELECT harness_version, profile_version, costs FROM completed_trials
         WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
        run,
      );
      return rows.map(({ harness_version: harness, profile_version: profile, costs }) => {
        return { harnessVersion: jsonIn(harness), profileVersion: jsonIn(profile), costs: jsonIn(costs) };
      });
    },
  };
}

interface StoredRun extends Pick<OpenPlatformRun, 'batchId' | 'taskIndex' | 'trials'> {
  batch: number;
  batchCase: number;
  /** JSON. */
  variant: string;
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
export function createBaselineStore(records: Records, isAudited: boolean) {
  const of = 'FROM runs WHERE organization = ? AND case_id = ?';
  // Each kind of run has an index of its own. A reported run has a suite's id once a trial of it counts.
  const platform = {
    isKind: 'local = 0',
    hasEnded: `EXISTS (SELECT 1 FROM completed_trials AS ended WHERE ended.key BETWEEN ${keysOfRun('runs.key')})`,
  };
  const reported = { isKind: 'local = 1 AND suite_id IS NOT NULL', hasEnded: 'true' };
  const kinds = (isAudited ? [platform, reported] : [platform]).map(({ isKind, hasEnded }) => {
    const ofCell = `${of} AND suite_id = ? AND variant_id = ? AND ${isKind}`;
    return {
      cells: `SELECT DISTINCT suite_id, variant_id ${of} AND suite_id IS NOT NULL AND ${isKind}`,
      newest: `SELECT key ${ofCell} AND ${hasEnded} ORDER BY key DESC LIMIT 1`,
      runs: `SELECT runs.key, runs.id, runs.started_at, runs.trials, runs.local,
          (SELECT id FROM batches WHERE batches.key = runs.batch) AS batch_id
        ${ofCell} AND definition_hash = ? AND ${hasEnded} ORDER BY key DESC LIMIT ?`,
      count: `SELECT count(*) AS runs ${ofCell}`,
    };
  });
  const idsOf = (organization: number, cell: BaselineCell) =>
    [organization, cell.case.id, cell.suite.id, cell.variant.id] as const;

  return {
    /** The newest first; of one suite, if it is given. */
    cells(
      organization: number,
      { caseId, suiteId }: { caseId: string; suiteId: string | undefined },
    ): BaselineCell[] {
      const newest = new Map<string, number>();
      for (const kind of kinds)
        for (const row of records.all(kind.cells, organization, caseId)) {
          if (suiteId !== undefined && row.suite_id !== suiteId) continue;
          const ids = [String(row.suite_id), String(row.variant_id)] as const;
          const found = Number(records.get(kind.newest, organization, caseId, ...ids)?.key ?? 0);
          const cell = JSON.stringify(ids);
          if (found > (newest.get(cell) ?? 0)) newest.set(cell, found);
        }
      const names = `SELECT runs.variant, runs.definition_hash, batches.suite_name, batch_cases.case_name
        FROM runs JOIN batches ON batches.key = runs.batch
          JOIN batch_cases ON batch_cases.key = runs.batch_case
        WHERE runs.key = ?`;
      return [...newest.values()]
        .sort((one, other) => other - one)
        .map((newest) => {
          const row = records.get(names, newest) ?? {};
          const [suite, of, variant] = [row.suite_name, row.case_name, row.variant].map(jsonIn);
          return { newest, suite, case: of, variant, definitionHash: String(row.definition_hash) };
        });
    },
    /** The runs of the cell's definition that have a trial that counts, newest first. */
    runs: (organization: number, cell: BaselineCell, limit: number): BaselineRunRow[] =>
      kinds
        .flatMap(({ runs }) => records.all(runs, ...idsOf(organization, cell), cell.definitionHash, limit))
        .map((row) => ({ ...inCode<BaselineRunRow>(row), local: row.local === 1 }))
        .sort((one, other) => other.key - one.key)
        .slice(0, limit),
    /** How many such runs the cell has, ended or not. */
    counts(organization: number, cell: BaselineCell): { sameDefinition: number; all: number } {
      const sum = (condition: string, ...more: string[]) =>
        kinds.reduce((all, { count }) => {
          const row = records.get(`${count}${condition}`, ...idsOf(organization, cell), ...more);
          return all + Number(row?.runs);
        }, 0);
      return { sameDefinition: sum(' AND definition_hash = ?', cell.definitionHash), all: sum('') };
    },
  };
}
