import { hasPassed, reachesThreshold, scoreText } from './failures.ts';
import type { TrialRecord } from './trial-record.ts';

/** A check in two gradings of the same work. */
export interface CheckBeside {
  /** The command of a verify step, or the name of a validation or a judgment. Foreign text. */
  name: string;
  kind: 'verify' | 'validation' | 'judgment';
  /** How it ended: `exit 1`, `passed`, `0.5`, `0.5 < 0.7`. Absent if that grading does not have it. */
  was?: string | undefined;
  now?: string | undefined;
  /** Whether the check is in only one of the gradings, passed in only one, or has different thresholds. */
  changed: boolean;
}

interface Check extends Pick<CheckBeside, 'kind' | 'name'> {
  outcome: string;
  passed: boolean;
  threshold?: number | undefined;
}

type Graded = Pick<TrialRecord, 'verifySteps' | 'validations' | 'judgments'>;

/** The checks of two gradings side by side, those that changed first. */
export function checksBeside(was: Graded, now: Graded): CheckBeside[] {
  const [before, after] = [checksOf(was), checksOf(now)];
  const rows = [...new Map([...before, ...after])].map(([key, { kind, name }]): CheckBeside => {
    const [one, other] = [before.get(key), after.get(key)];
    return { kind, name, was: one?.outcome, now: other?.outcome, changed: isOther(one, other) };
  });
  return rows.toSorted((one, other) => Number(other.changed) - Number(one.changed));
}

function isOther(one: Check | undefined, other: Check | undefined): boolean {
  return one?.passed !== other?.passed || one?.threshold !== other?.threshold;
}

/** A threshold that differs in two gradings. Absent on a side where the judgment has none. */
export interface ThresholdChange {
  /** The name of the judgment. Foreign text. */
  name: string;
  was?: number | undefined;
  now?: number | undefined;
}

/** The thresholds of judgments that both gradings have, and that changed. */
export function thresholdChanges(was: Graded, now: Graded): ThresholdChange[] {
  const [before, after] = [checksOf(was), checksOf(now)];
  return [...before].flatMap(([key, one]) => {
    const other = after.get(key);
    if (!other || one.threshold === other.threshold) return [];
    return [{ name: one.name, was: one.threshold, now: other.threshold }];
  });
}

/** The checks, keyed by kind, name and how many of the same name came before. */
function checksOf({ verifySteps = [], validations = [], judgments = [] }: Graded): Map<string, Check> {
  const checks = new Map<string, Check>();
  const add = (kind: Check['kind'], name: string, check: Omit<Check, 'kind' | 'name'>) => {
    for (let same = 0; ; same++) {
      const key = JSON.stringify([kind, name, same]);
      if (checks.has(key)) continue;
      checks.set(key, { kind, name, ...check });
      return;
    }
  };
  for (const { command, exitCode } of verifySteps)
    add('verify', command, { outcome: `exit ${exitCode}`, passed: exitCode === 0 });
  for (const validation of validations) {
    const passed = hasPassed(validation, judgments);
    add('validation', validation.name, { outcome: passed ? 'passed' : 'failed', passed });
  }
  for (const judgment of judgments) {
    const { name, threshold } = judgment;
    add('judgment', name, { outcome: scoreText(judgment), passed: reachesThreshold(judgment), threshold });
  }
  return checks;
}
