import { ownTrialSpec } from '../../agent/trial-spec.ts';
import type { CaseOracle } from '../../suite/case-tests.ts';
import type { PlannedCase, SuitePlan } from '../../suite/plan.ts';
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
  const { solution, oracle } = planned.local;
  const { id } = planned.request;
  const solved = oracle
    ? withOracle(specFor(plan, planned, ':'), oracle)
    : solution === undefined
      ? undefined
      : specFor(plan, planned, solution);
  const untouched = { id, state: 'untouched' as const, spec: specFor(plan, planned, ':') };
  return solved ? [untouched, { id, state: 'solved', spec: solved }] : [untouched];
}

/**
 * A trial of the command harness with this script, in the image in which the first variant's trials start.
 */
function specFor(plan: SuitePlan, planned: PlannedCase, script: string): TrialSpec {
  const [variant] = plan.variants;
  if (!variant) throw new Error('a suite has at least one variant');
  const { request } = planned;
  const spec = ownTrialSpec(
    {
      record: {
        id: 'check',
        setup: {
          prompt: plan.suite.prompt.kind === 'text' ? plan.suite.prompt.text : '',
          prepare: request.prepare?.source,
          verify: request.verify,
          validator: request.validator?.source,
          validatorFiles: request.validator?.sourceFiles,
        },
      },
      taskIndex: 0,
      case: planned,
      variant,
      prompt: plan.suite.prompt.kind === 'text' ? plan.suite.prompt.text : '',
      batchId: 'check',
      judges: plan.judges,
    },
    0,
  );
  return {
    ...spec,
    harness: 'command',
    model: 'none',
    modelConfig: undefined,
    user: undefined,
    profile: { ...spec.profile, run: script },
  };
}

/** The trial with the author's own way to solve the case as its harness. Only this trial gets its files. */
function withOracle(spec: TrialSpec, { files, command, env }: CaseOracle): TrialSpec {
  const { environment, profile } = spec;
  return {
    ...spec,
    environment: { ...environment, files: [...(environment.files ?? []), ...files] },
    profile: { ...profile, run: command.map(shellWord).join(' '), env: { ...profile.env, ...env } },
  };
}
