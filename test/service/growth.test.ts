import type { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { ReportRequest } from '../../src/contract/report.ts';
import { inTransaction } from '../../src/ledger/database.ts';
import { claimTrial } from '../../src/service/operations/handlers.ts';
import { reportTrial } from '../../src/service/operations/report-trial.ts';
import { startBatch } from '../../src/service/operations/start.ts';
import { countPages, type PageCounts } from './page-counts.ts';
import { openStoredRuns, readPage, type StoredRuns, startOf, storeRuns, written } from './stored-runs.ts';
import { folderForTest, report } from './test-service.ts';

/** With so many runs stored, where both are multiples of 400. */
const [few, many] = [800, 16_000] as const;
const manyCases = Array.from({ length: 20 }, (_, index) => `case-${index}`);

let turn = 0;

/** What is counted, with `count` runs of 20 models stored, 20 to a page. */
const operations: Record<string, (runs: StoredRuns, count: number, ids: string[]) => void> = {
  'list the first page': (runs) => void readPage(runs, 1),
  // A page that was not listed before.
  'list a page in the middle': (runs, count) => void readPage(runs, count / 40 - 2 * turn++),
  'list the last page': (runs, count) => void readPage(runs, count / 20),
  'list a page of a model in the middle': (runs, count) => void readPage(runs, count / 800, 'model-7'),
  claim: ({ call }, _, ids) =>
    void claimTrial(call, { id: taken(ids), ordinal: 0, agent: 'one', seconds: 60 }),
  report: ({ call }, _, ids) => void written(reportTrial(call, reportOf(taken(ids)))),
  'start 2 runs': ({ call }) => void written(startBatch(call, startOf(['csv'], 2))),
  'start 400 runs': ({ call }) => void written(startBatch(call, startOf(manyCases, 20))),
};

function reportOf(id: string): ReportRequest {
  return report(id, 0, undefined, { caseName: 'csv' }) as unknown as ReportRequest;
}

/** Takes a run from the middle of those that are left. */
function taken(ids: string[]): string {
  return ids.splice(ids.length / 2, 1)[0] ?? '';
}

test('no operation touches more pages because more runs are stored', () => {
  const counts = (count: number) => {
    turn = 0;
    using folder = folderForTest();
    using runs = openStoredRuns(folder.path);
    const ids = storeRuns(runs, count);
    return Object.entries(operations).map(([name, operation]): [string, PageCounts] => [
      name,
      countPages(runs.database, () => inTransaction(runs.database, () => operation(runs, count, ids))),
    ]);
  };
  const atFew = new Map(counts(few));
  for (const [name, { read, written }] of counts(many)) {
    const least = atFew.get(name) as PageCounts;
    // Indexes may be deeper by a page, and the ends of short lists are in one page.
    const most = (pages: number) => pages * 1.5 + 4;
    expect.soft(read, `${name}: pages read`).toBeLessThanOrEqual(most(least.read));
    expect.soft(written, `${name}: pages written`).toBeLessThanOrEqual(most(least.written));
  }
});

test('no operation searches a table from end to end', () => {
  using folder = folderForTest();
  const asked = new Set<string>();
  using runs = openStoredRuns(folder.path, (database) => watchStatements(database, asked));
  const ids = storeRuns(runs, 40);
  const plans = Object.entries(operations).flatMap(([name, operation]) => {
    asked.clear();
    operation(runs, 40, ids);
    expect(asked.size, name).toBeGreaterThan(2);
    return [...asked].flatMap((statement) =>
      runs.database
        .prepare(`EXPLAIN QUERY PLAN ${statement}`)
        .all()
        .map(({ detail }) => `${detail} in ${statement}`),
    );
  });
  expect(plans.length).toBeGreaterThan(20);
  expect(plans.filter((step) => /^SCAN (?!CONSTANT ROW)|TEMP B-TREE/.test(step))).toEqual([]);
});

/** Collects the text of each statement that is executed. */
function watchStatements(database: DatabaseSync, asked: Set<string>): void {
  const prepare = database.prepare.bind(database);
  database.prepare = (text) => {
    const statement = prepare(text);
    for (const how of ['get', 'all', 'run'] as const) {
      const execute = statement[how].bind(statement) as (...values: unknown[]) => never;
      statement[how] = (...values: unknown[]) => {
        asked.add(text);
        return execute(...values);
      };
    }
    return statement;
  };
}
