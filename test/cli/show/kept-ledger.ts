import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { recordVersion, type TrialRecord } from '../../../src/record/trial-record.ts';

/** A ledger in a folder of its own, which is removed at the end. */
export interface KeptLedger extends Disposable {
  ledger: Ledger;
  folder: string;
  /** Adds a batch with one run for each name; each trial of a run has the result at its place. */
  add(id: string, runs: Record<string, (Partial<TrialRecord> | undefined)[]>): Promise<void>;
}

/** The smallest result of a trial that passed. */
export const passed: TrialRecord = {
  version: recordVersion,
  verdict: 'passed',
  startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
  finishedAt: Date.UTC(2026, 0, 2, 3, 4, 7),
  phases: [{ name: 'harness', startedAt: Date.UTC(2026, 0, 2, 3, 4, 5), durationMs: 1500 }],
  modelUnmeasured: false,
};

export function keptLedger(): KeptLedger {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-show-'));
  let now = Date.UTC(2026, 0, 2, 3, 0);
  const ledger = new Ledger(folder, { ...systemClock, now: () => (now += 1000) });
  return {
    ledger,
    folder,
    async add(id, runs) {
      const names = Object.keys(runs);
      const { key } = ledger.batches.add({
        service: 'embedded',
        id,
        suite: 'Suite',
        file: undefined,
        runs: names.map((caseId, taskIndex) => {
          return {
            id: `run_${id}_${taskIndex}`,
            taskIndex,
            caseId,
            caseName: caseId,
            variant: 'v',
            details: {},
          };
        }),
      });
      for (const [index, run] of ledger.batches.runs(key).entries()) {
        const results = runs[names[index] ?? ''] ?? [];
        ledger.queue.add([{ run: run.key, setup: undefined, ordinals: [...results.keys()] }]);
        for (const trial of ledger.queue.ofBatch(key).filter((one) => one.run === run.key)) {
          const given = results[trial.ordinal];
          if (!given) continue;
          const result = { ...passed, ...given };
          const report = {
            caseName: run.caseId,
            ordinal: trial.ordinal,
            taskIndex: 0,
            events: [],
            outcome: {},
          };
          await ledger.trials.finish(ledger.trials.beginAttempt(trial.key), {
            verdict: result.verdict,
            cause: result.cause,
            report,
            result,
          });
        }
      }
    },
    [Symbol.dispose]() {
      ledger[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
