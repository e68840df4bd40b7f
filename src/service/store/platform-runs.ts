import type { DatabaseSync } from 'node:sqlite';
import type { Costs } from '../../contract/record.ts';
import { inCode } from '../../ledger/records.ts';
import type { OpenPlatformRun } from '../platform.ts';
import { setupOf } from '../record/setup.ts';
import { lastRead, readsDefinitions } from './runs.ts';
import { keyOf, keysOfRun } from './trials.ts';

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
