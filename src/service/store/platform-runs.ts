import type { Baseline } from '../../contract/catalog.ts';
import type { Records } from '../../ledger/records.ts';
import type { OpenPlatformRun } from '../platform.ts';
import { setupOf } from '../record/setup.ts';
import { lastRead, type Run, type RunStore } from './runs.ts';
import type { createTrialStore } from './trials.ts';
import { keysOfRun } from './trials.ts';

/** The runs that the platform itself is to run, of all organizations. */
export function createOpenRunStore(
  records: Records,
  { read, definitions }: RunStore,
  trials: Pick<ReturnType<typeof createTrialStore>, 'summaries'>,
) {
  /** The ids of the open runs, by their keys. Kept, because reading many ids takes most of the time. */
  let ids = new Map<number, string>();

  return {
    /** Oldest first, without those whose ids are in `known`. */
    all(known: ReadonlySet<string>): OpenPlatformRun[] {
      const keys = records.all('SELECT run FROM open_runs ORDER BY run').map(({ run }) => Number(run));
      const idOf = (key: number) => String(records.get('SELECT id FROM runs WHERE key = ?', key)?.id);
      ids = new Map(keys.map((key) => [key, ids.get(key) ?? idOf(key)]));
      // Runs of one case are next to one another, and share its texts.
      const suites = lastRead(definitions.suite);
      const cases = lastRead(definitions.case);
      const setups = lastRead((key, batch: number) => setupOf(suites(batch), cases(key)));
      return [...ids]
        .filter(([, id]) => !known.has(id))
        .map(([key]) => {
          const { batch, batchCase, ...run } = read(key);
          const { id, batchId, taskIndex, variant, trials: planned } = run;
          return {
            id,
            batchId,
            taskIndex,
            variant,
            trials: planned,
            get suite() {
              return suites(batch);
            },
            get case() {
              return cases(batchCase);
            },
            get setup() {
              return setups(batchCase, batch);
            },
            ended: [...trials.summaries(key).keys()],
          };
        });
    },
    /** Marks a run as no longer open. */
    close(run: number): void {
      records.run('DELETE FROM open_runs WHERE run = ?', run);
    },
  };
}

/** A cell of a case with an ended trial that counts. */
export interface BaselineCell extends Pick<Baseline, 'suite' | 'case' | 'variant' | 'definitionHash'> {
  /** The newest run with such a trial, which gives the other fields. */
  newest: number;
}

/**
 * What baselines are made of: the platform runs of a cell, and, if the owner says so, reported runs with
 * trials whose evidence was graded again here.
 *
 * @param isAudited whether reported runs count, too
 */
export function createBaselineStore(records: Records, { read }: RunStore, isAudited: boolean) {
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
      runs: `SELECT key ${ofCell} AND definition_hash = ? AND ${hasEnded} ORDER BY key DESC LIMIT ?`,
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
      return [...newest.values()]
        .sort((one, other) => other - one)
        .map((newest) => {
          const { suite, case: of, variant, definitionHash } = read(newest);
          return { newest, suite, case: of, variant, definitionHash };
        });
    },
    /** The runs of the cell's definition that have a trial that counts, newest first. */
    runs: (organization: number, cell: BaselineCell, limit: number): Run[] =>
      kinds
        .flatMap(({ runs }) => records.all(runs, ...idsOf(organization, cell), cell.definitionHash, limit))
        .map(({ key }) => Number(key))
        .sort((one, other) => other - one)
        .slice(0, limit)
        .map(read),
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
