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

/** More than a story shows. */
export const longOutput = Array.from({ length: 500 }, (_, index) => `line ${index}`).join('\n');

/** One that failed in every way: by verify, a validation and a judgment. */
export const failed: Partial<TrialRecord> = {
  verdict: 'failed',
  verifySteps: [
    { command: 'npm ci', exitCode: 0, output: 'fine', outputTruncated: false, durationMs: 30 },
    {
      command: 'npm test',
      exitCode: 1,
      outputTruncated: false,
      durationMs: 1200,
      output: `start\n${longOutput}\nAssertionError: 1 is not 2\nend`,
    },
  ],
  validations: [
    {
      id: 'a',
      index: 0,
      name: 'is tidy',
      exitCode: 1,
      message: 'it is a mess',
      logs: [{ index: 0, value: { text: 'a log' } }],
    },
    { id: 'b', index: 1, name: 'is there', exitCode: 0 },
  ],
  judgments: [{ name: 'style', score: 0.4, threshold: 0.7, reason: 'too clever', model: 'judge-1' }],
  subject: {
    caseName: 'a',
    ordinal: 0,
    model: 'model-1',
    harness: 'codex',
    image: 'offsite/base',
    network: 'none',
    prompt: 'Make 1 be 2.',
    verify: 'npm test',
  },
  harnessVersion: '1.2.3',
  trajectory: [
    {
      _tag: 'command',
      command: 'ls -la',
      exitCode: 2,
      startedAtMillis: passed.startedAt + 300,
      output: 'no such file',
    },
  ],
  events: [{ kind: 'message', at: passed.startedAt + 100, text: 'I will look\nat it' }],
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
        ledger.queue.add([{ key: run.key, setup: undefined, ordinals: [...results.keys()] }]);
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
