import { plannedTrialSpec } from '../../agent/trial-spec.ts';
import type { CaseSteps } from '../../suite/case-steps.ts';
import type { CaseOracle } from '../../suite/case-tests.ts';
import type { PlannedCase, Profile, SuitePlan } from '../../suite/plan.ts';
import { expandVariables } from '../../suite/variables.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import { shellWord } from '../show/words.ts';
import type { CheckedState } from './checked-state.ts';

/** A state of a case's workspace, and the trial that grades it. */
export interface StateToCheck {
  id: string;
  state: CheckedState['state'];
  spec: TrialSpec;
}

/** The states of a case: untouched, and solved if its author has a way to solve it. */
export function statesOf(plan: SuitePlan, planned: PlannedCase): StateToCheck[] {
  const { id } = planned.request;
  const untouched = { id, state: 'untouched' as const, spec: specFor(plan, planned, ':') };
  if (!isSolvable(planned.local)) return [untouched];
  return [untouched, { id, state: 'solved', spec: solvedSpec(plan, planned) }];
}

/**
 * A trial of the command harness with this script, in the image in which the first variant's trials start.
 */
function specFor(plan: SuitePlan, planned: PlannedCase, script: string): TrialSpec {
  const [variant] = plan.variants;
  if (!variant) throw new Error('a suite has at least one variant');
  const spec = plannedTrialSpec(plan, { case: planned, variant, id: 'check', ordinal: 0 });
  return {
    ...spec,
    harness: 'command',
    model: 'none',
    modelConfig: undefined,
    user: undefined,
    profile: { ...spec.profile, run: script },
  };
}

function isSolvable({ solution, oracle, steps }: PlannedCase['local']): boolean {
  if (steps) return steps.list.every((step) => step.oracle !== undefined);
  return solution !== undefined || oracle !== undefined;
}

/** The trial that solves a case, which is solvable. */
function solvedSpec(plan: SuitePlan, planned: PlannedCase): TrialSpec {
  const { solution = ':', oracle, steps } = planned.local;
  const script = expandVariables(solution, planned.request.variables ?? {}, 'keep');
  const spec = specFor(plan, planned, script);
  if (steps) return withStepOracles(spec, steps);
  return oracle ? withOracle(spec, oracle) : spec;
}

/** Each step gets the files of its own oracle, and none of an earlier one. */
function withStepOracles(spec: TrialSpec, { list }: CaseSteps): TrialSpec {
  const steps = spec.steps?.list.map((step, index) => {
    const oracle = list[index]?.oracle;
    if (!oracle) return step;
    const folders = oracle.files.map(({ path }) => `/${path.split('/')[1]}`);
    return {
      ...step,
      emptied: [...new Set([...step.emptied, ...folders])],
      files: [...step.files, ...oracle.files],
      profile: oracleProfile(spec, oracle),
    };
  });
  return { ...spec, ...(spec.steps && steps && { steps: { ...spec.steps, list: steps } }) };
}

function oracleProfile({ profile }: TrialSpec, { command, env }: CaseOracle): Profile {
  return { ...profile, run: command.map(shellWord).join(' '), env: { ...profile.env, ...env } };
}

/** The trial with the author's solution (oracle) as its harness. Only this trial gets the oracle's files. */
function withOracle(spec: TrialSpec, oracle: CaseOracle): TrialSpec {
  const { environment, sandbox, testsIn = { environment, sandbox } } = spec;
  return {
    ...spec,
    testsIn,
    environment: { ...environment, files: [...(environment.files ?? []), ...oracle.files] },
    profile: oracleProfile(spec, oracle),
  };
}
