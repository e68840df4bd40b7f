import type { StepResult, TrialRecord } from './trial-record.ts';

/**
 * Where a step stands: `passed` if its rewards had thresholds and reached all of them, `no-threshold` if
 * nothing was required of it.
 */
export type StepStanding = 'passed' | 'failed' | 'void' | 'no-threshold' | 'not-run';

/** A reward of a step. */
export interface StepReward {
  name: string;
  /** Undefined if the tests did not give it. */
  score: number | undefined;
  /** Undefined if it has to reach nothing. */
  threshold: number | undefined;
}

export function stepStanding(step: StepResult, record: Pick<TrialRecord, 'judgments'>): StepStanding {
  if (step.startedAt === undefined) return 'not-run';
  const { verdict = 'void' } = step;
  if (verdict !== 'passed') return verdict;
  return stepRewards(step, record).some(({ threshold }) => threshold !== undefined)
    ? 'passed'
    : 'no-threshold';
}

/**
 * The rewards that a step gave, and those that it had to give. The names of judgments begin with the name of
 * the step.
 */
export function stepRewards(
  { name: step, rewards = {} }: StepResult,
  { judgments = [] }: Pick<TrialRecord, 'judgments'>,
): StepReward[] {
  const before = `${step}: `;
  const judged = judgments.flatMap(({ name, score, threshold }) =>
    name.startsWith(before) ? [{ name: name.slice(before.length), score, threshold }] : [],
  );
  const known = new Set(judged.map(({ name }) => name));
  const others = Object.entries(rewards).filter(([name]) => !known.has(name));
  return [...judged, ...others.map(([name, score]) => ({ name, score, threshold: undefined }))];
}

/** Such as `reward 0.5, of at least 1`. */
export function stepRewardText({ name, score, threshold }: StepReward): string {
  const required = threshold === undefined ? 'no threshold' : `of at least ${threshold}`;
  return `${name} ${score ?? 'missing'}, ${required}`;
}
