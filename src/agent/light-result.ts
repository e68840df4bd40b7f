import type { CommandEntry } from '../record/harness.ts';
import type { TrialResult } from '../record/trial-record.ts';

/** A result without its large parts; numbers, names and verdicts stay. The ledger has the whole result. */
export function lightResult(result: TrialResult): TrialResult {
  const { trajectory, derivedTrajectory, verifySteps, validations, models, cause } = result;
  return {
    ...result,
    subject: undefined,
    events: undefined,
    harnessOutput: undefined,
    changes: undefined,
    finalMessage: undefined,
    trajectory: trajectory?.map(withoutOutput),
    derivedTrajectory: derivedTrajectory?.map(withoutOutput),
    verifySteps: verifySteps?.map((step) => ({ ...step, output: '' })),
    validations: validations?.map(({ index, name, message, exitCode, startedAt, durationMs, id }) => ({
      index,
      name,
      message,
      exitCode,
      startedAt,
      durationMs,
      id,
    })),
    models: models && { ...models, exchanges: [], connections: [] },
    cause: cause && { ...cause, output: undefined },
  };
}

function withoutOutput({ output: _, ...entry }: CommandEntry): CommandEntry {
  return entry;
}
