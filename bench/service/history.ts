import type { Case, Suite } from '../../src/contract/definition.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { inTransaction } from '../../src/ledger/database.ts';
import { reportTrial } from '../../src/service/operations/report-trial.ts';
import { startBatch } from '../../src/service/operations/start.ts';
import { inStore, written } from './fill.ts';
import { exampleTrial } from './report-body.ts';

const suite: Suite = { id: 'history', name: 'History', prompt: 'Mend the parser.' };
export const historyCase = 'old';
const old: Case = { id: historyCase, name: 'Old', verify: 'npm test' };

/**
 * Writes to service.db ten finished batches of the case `old`: 20 runs, which are one page, with 10 trials
 * each.
 */
export function fillHistory(folder: string, key: string, trajectoryBytes: number): void {
  inStore(folder, key, (call, database) => {
    const variants = [{ model: 'one' }, { model: 'two' }];
    for (let batch = 0; batch < 10; batch++) {
      const { runs } = written(startBatch(call, { suite, cases: [old], variants, trials: 10, local: true }));
      for (const { id } of runs)
        for (let ordinal = 0; ordinal < 10; ordinal++)
          inTransaction(database, () =>
            written(reportTrial(call, { id, trial: trialWith(ordinal, trajectoryBytes) })),
          );
    }
  });
}

function trialWith(ordinal: number, trajectoryBytes: number): ReportedTrial {
  const trial = exampleTrial('Old', ordinal);
  const output = 'ok 1 - the parser keeps the last line without a newline\n'.repeat(180);
  const at = 1_750_000_000_000;
  const entry = { _tag: 'command' as const, command: 'npm test', exitCode: 0, startedAtMillis: at, output };
  const count = Math.ceil(trajectoryBytes / JSON.stringify(entry).length);
  return { ...trial, events: trial.events.concat(Array.from({ length: count }, () => entry)) };
}
