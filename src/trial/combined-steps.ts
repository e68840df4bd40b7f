import { sumOfUsage } from '../contract/usage.ts';
import type { Judgment } from '../contract/validation.ts';
import type { StepResult } from '../record/trial-record.ts';
import { verdictOf } from '../validate/verdict.ts';
import { trajectoryPath } from './artifacts.ts';
import type { Found } from './phases/phase.ts';
import type { TrialSpec, TrialStep, TrialSteps } from './spec.ts';
import { judgmentsOf } from './tests/grade.ts';

/** A step that has begun, and what it found so far. */
export interface RanStep {
  /** Undefined if the trial has no steps. */
  step: TrialStep | undefined;
  /** Epoch milliseconds. */
  startedAt: number;
  finishedAt: number;
  found: Found;
}

/**
 * What the steps of a trial found together. Facts about the sandbox as a whole, such as changed files, are as
 * the last step left them.
 */
export function combinedSteps({ steps }: TrialSpec, ran: readonly RanStep[]): Found {
  const last = ran.at(-1)?.found ?? {};
  if (!steps) return last;
  const named = ran.flatMap(({ step, ...rest }) => (step ? [{ name: step.name, ...rest }] : []));
  const all = <Key extends 'trajectory' | 'events' | 'artifactsOmitted' | 'testsConnections'>(key: Key) =>
    named.flatMap(({ found }) => (found[key] ?? []) as NonNullable<Found[Key]>[number][]);
  const judgments = [
    ...caseJudgments(steps, named),
    ...named.flatMap(({ name, found }) =>
      (found.judgments ?? []).map((judgment) => ({ ...judgment, name: `${name}: ${judgment.name}` })),
    ),
  ];
  const validations = named
    .flatMap(({ name, found }) =>
      (found.validations ?? []).map((one) => ({ ...one, name: `${name}: ${one.name}` })),
    )
    .map((one, index) => ({ ...one, id: `validation-${index}`, index }));
  const cause = named.findLast(({ found }) => found.cause);
  const counts = named.map(({ found }) => found.harnessCounts ?? {});
  const usage = counts.map(({ usage }) => usage);
  const commands = counts.map(({ commands }) => commands);
  const deviations = new Set(named.flatMap(({ found }) => found.deviations ?? []));
  const isComplete = ran.length === steps.list.length;
  const failed = named.find(({ found }) => found.verdict !== 'passed');
  const verdict = failed
    ? failed.found.verdict
    : isComplete
      ? verdictOf({ verifySteps: [], validations, judgments })
      : undefined;
  return {
    ...last,
    verdict,
    ...(cause?.found.cause && {
      cause: { ...cause.found.cause, message: `step ${cause.name}: ${cause.found.cause.message}` },
    }),
    steps: stepResults(steps, named),
    trajectory: all('trajectory'),
    events: all('events'),
    ...(deviations.size > 0 && { deviations: [...deviations] }),
    commandsCut: named.some(({ found }) => found.commandsCut) || undefined,
    turns: named.reduce((sum, { found }) => sum + (found.turns ?? 0), 0),
    harnessCounts: {
      usage: usage.every((one) => one !== undefined) ? sumOfUsage(usage) : undefined,
      commands: commands.every((one) => one !== undefined)
        ? commands.reduce((sum, one) => sum + one, 0)
        : undefined,
    },
    ...{ validations, judgments },
    artifacts: named.flatMap(({ name, found }) =>
      (found.artifacts ?? [])
        .filter(({ path }) => path !== trajectoryPath)
        .map((artifact) => ({ ...artifact, path: `steps/${name}/${artifact.path}` })),
    ),
    artifactsOmitted: all('artifactsOmitted'),
    ...(named.some(({ found }) => found.testsConnections) && { testsConnections: all('testsConnections') }),
  } as Found;
}

type NamedStep = Omit<RanStep, 'step'> & { name: string };

function stepResults({ list }: TrialSteps, ran: readonly NamedStep[]): StepResult[] {
  return list.map(({ name }, index) => {
    const here = ran[index];
    if (!here) return { name };
    const { startedAt, finishedAt, found } = here;
    const { verdict, cause, harness } = found;
    const rewards = rewardsOf(here);
    return {
      ...{ name, startedAt, finishedAt },
      ...(verdict && { verdict }),
      ...(cause && { cause }),
      ...(rewards.size > 0 && { rewards: Object.fromEntries(rewards) }),
      ...(harness && { harness }),
    };
  });
}

/** The rewards of the case, by its strategy, beside what they must reach. */
function caseJudgments({ strategy, thresholds }: TrialSteps, ran: readonly NamedStep[]): Judgment[] {
  const rewards = ran.map(rewardsOf);
  if (strategy === 'final') return judgmentsOf(rewards.at(-1) ?? new Map(), thresholds, 'the last step');
  const rewarded = rewards.filter(({ size }) => size > 0);
  const names = new Set(rewarded.flatMap((one) => [...one.keys()]));
  const means = [...names].map((name): [string, number] => {
    const sum = rewarded.reduce((total, one) => total + (one.get(name) ?? 0), 0);
    return [name, sum / rewarded.length];
  });
  return judgmentsOf(new Map(means), thresholds, 'the mean of the steps');
}

function rewardsOf({ found: { judgments = [] } }: NamedStep): ReadonlyMap<string, number> {
  return new Map(
    judgments.flatMap(({ name, score }) => (score === undefined ? [] : [[name, score] as const])),
  );
}
