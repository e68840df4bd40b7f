import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Case, Suite } from '../../src/contract/definition.ts';
import type { ReportRequest } from '../../src/contract/report.ts';
import { inTransaction, openDatabase } from '../../src/ledger/database.ts';
import type { Call, Change, Steps } from '../../src/service/operations/call.ts';
import { reportTrial } from '../../src/service/operations/report-trial.ts';
import { startBatch } from '../../src/service/operations/start.ts';
import { migrations } from '../../src/service/store/migrations.ts';
import { createStores } from '../../src/service/store/stores.ts';
import { exampleTrial } from './report-body.ts';

const suite: Suite = { id: 'bench', name: 'Bench', prompt: 'Mend the parser. '.repeat(20) };
const listed: Case = { id: 'listed', name: 'Listed', verify: 'npm test' };
const open: Case = { id: 'open', name: 'Open', verify: 'npm test' };
const trialsPerRun = 10;

/** Calls `work` with what the handlers of the service get, for the service.db of a folder. */
export function inStore<Result>(
  folder: string,
  key: string,
  work: (call: Call, database: DatabaseSync) => Result,
): Result {
  const database = openDatabase(join(folder, 'service.db'), migrations);
  try {
    const now = 1_750_000_000_000;
    const stores = createStores(database, () => now);
    stores.keys.seed(key, { organization: 'Bench', permissions: ['evals:read', 'evals:write'] });
    const principal = stores.keys.find(key);
    if (!principal) throw new Error('the key that was just seeded is not there');
    return work({ stores, principal, inProgress: new Set<string>(), integrations: [], now }, database);
  } finally {
    database.close();
  }
}

/** Takes all steps of a request that writes, and writes it. */
export function written<Response>(steps: Steps<Change<Response>>): Response {
  for (;;) {
    const step = steps.next();
    if (!step.done) continue;
    for (const part of step.value.before ?? []) part();
    return step.value.change();
  }
}

/**
 * Writes to service.db `runs` finished runs with one trial each of the case `listed`, and `reports` trials of
 * the case `open` that wait for their reports. Returns the ids of the waiting runs, each with {@link
 * trialsPerRun} trials.
 */
export function fill(
  folder: string,
  key: string,
  { runs, reports }: { runs: number; reports: number },
): string[] {
  return inStore(folder, key, (call, database) => {
    const start = (added: Case, count: number, trials: number) => {
      const variants = Array.from({ length: count }, (_, index) => ({ model: `model-${index}` }));
      return written(startBatch(call, { suite, cases: [added], variants, trials, local: true })).runs;
    };
    // One request may have at most twenty variants.
    for (let done = 0; done < runs; ) {
      inTransaction(database, () => {
        for (let batch = 0; batch < 100 && done < runs; batch++) {
          for (const run of start(listed, Math.min(20, runs - done), 1)) {
            written(reportTrial(call, { id: run.id, trial: exampleTrial('Listed', 0) }));
            done++;
          }
        }
      });
    }
    return inTransaction(database, () => {
      const waiting: string[] = [];
      while (waiting.length * trialsPerRun < reports) {
        waiting.push(...start(open, 20, trialsPerRun).map(({ id }) => id));
      }
      return waiting;
    });
  });
}

/** The n-th report of the runs that `fill` left waiting; undefined if there are no more. */
export function reportOf(waiting: string[], request: number): ReportRequest | undefined {
  const id = waiting[Math.floor(request / trialsPerRun)];
  return id === undefined ? undefined : { id, trial: exampleTrial('Open', request % trialsPerRun) };
}
