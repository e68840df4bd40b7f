import { reachesThreshold } from './failures.ts';
import type { TrialRecord } from './trial-record.ts';

/** A check in two gradings of the same work. */
export interface CheckBeside {
  /** The command of a verify step, or the name of a validation or a judgment. Foreign text. */
  name: string;
  kind: 'verify' | 'validation' | 'judgment';
  /** How it ended: `exit 1`, `passed`, `0.5`. Absent if that grading does not have it. */
  was?: string | undefined;
  now?: string | undefined;
  /** Whether one of them passed and the other did not, or is missing. */
  changed: boolean;
}

interface Check extends Pick<CheckBeside, 'kind' | 'name'> {
  told: string;
  passed: boolean;
}

type Graded = Pick<TrialRecord, 'verifySteps' | 'validations' | 'judgments'>;

/** The checks of two gradings side by side, those that changed first. */
export function checksBeside(was: Graded, now: Graded): CheckBeside[] {
  const [before, after] = [checksOf(was), checksOf(now)];
  const rows = [...new Map([...before, ...after])].map(([key, { kind, name }]): CheckBeside => {
    const [one, other] = [before.get(key), after.get(key)];
    return { kind, name, was: one?.told, now: other?.told, changed: one?.passed !== other?.passed };
  });
  return rows.toSorted((one, other) => Number(other.changed) - Number(one.changed));
}

/** By kind, name and how many of the same name came before. */
function checksOf({ verifySteps = [], validations = [], judgments = [] }: Graded): Map<string, Check> {
  const checks = new Map<string, Check>();
  const add = (kind: Check['kind'], name: string, check: Pick<Check, 'told' | 'passed'>) => {
    for (let same = 0; ; same++) {
      const key = JSON.stringify([kind, name, same]);
      if (checks.has(key)) continue;
      checks.set(key, { kind, name, ...check });
      return;
    }
  };
  for (const { command, exitCode } of verifySteps)
    add('verify', command, { told: `exit ${exitCode}`, passed: exitCode === 0 });
  for (const { name, exitCode = 0 } of validations)
    add('validation', name, { told: exitCode === 0 ? 'passed' : 'failed', passed: exitCode === 0 });
  for (const judgment of judgments) {
    const { name, score } = judgment;
    add('judgment', name, { told: String(score ?? 'no score'), passed: reachesThreshold(judgment) });
  }
  return checks;
}
