import { plannedTrialSpec } from '../agent/trial-spec.ts';
import type { PlannedCase, SuitePlan } from '../suite/plan.ts';
import { solvedBy } from '../trial/solution.ts';
import type { TrialSolution, TrialSpec, TrialSteps } from '../trial/spec.ts';
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
  const [variant] = plan.variants;
  if (!variant) throw new Error('a suite has at least one variant');
  const spec = plannedTrialSpec(plan, { case: planned, variant, id: 'check', ordinal: 0 });
  const { answers, hidesLaterCommits = !readsHistory(spec) } = spec;
  const searched = { ...checkedBy(spec, nothing), answers, hidesLaterCommits };
  const untouched = { id, state: 'untouched' as const, spec: searched };
  const solved = solvedSpec(spec);
  return solved ? [untouched, { id, state: 'solved', spec: solved }] : [untouched];
}

/**
 * Whether the author's own solution works with the history of a repository. If so, commits that are not in
 * the history of HEAD may be what the case is about.
 */
function readsHistory({ solution, steps }: TrialSpec): boolean {
  const solutions = [solution, ...(steps?.list ?? []).map((step) => step.solution)];
  const texts = solutions.flatMap((one) => [
    one?.run ?? '',
    ...(one?.files ?? []).map((file) => ('content' in file ? file.content.toString('utf8') : '')),
  ]);
  return texts.some((text) => usesHistory.test(text));
}

const usesHistory =
  /\bgit\b[^\n|;&]* (bundle|branch|cat-file|checkout|cherry-pick|fsck|log|merge|pull|rebase|reflog|reset|restore|revert|show|stash|switch)\b/;

const nothing: TrialSolution = { files: [], run: ':', env: {} };

/**
 * The trial with this in place of its agent. No solution is a control of its grading: without a verdict of
 * its own, a state shows that the case is not sound.
 */
function checkedBy(spec: TrialSpec, solution: TrialSolution): TrialSpec {
  return { ...solvedBy(spec, solution), solution: undefined };
}

/** The trial that solves a case. Undefined if its author does not say how. */
function solvedSpec({ solution, steps, ...spec }: TrialSpec): TrialSpec | undefined {
  if (steps) return solvedSteps(spec, steps);
  if (!solution) return undefined;
  const { environment, sandbox, testsIn = { environment, sandbox } } = spec;
  const files = [...(environment.files ?? []), ...solution.files];
  // Only this trial gets the files of the solution, and its tests do not.
  const own = solution.files.length > 0 ? { testsIn, environment: { ...environment, files } } : {};
  return { ...checkedBy(spec, solution), ...own };
}

/** Each step gets the files of its own solution, and none of an earlier one. */
function solvedSteps(spec: TrialSpec, steps: TrialSteps): TrialSpec | undefined {
  const list = steps.list.flatMap(({ solution, ...step }) => {
    if (!solution) return [];
    const folders = solution.files.map(({ path }) => `/${path.split('/')[1]}`);
    return {
      ...step,
      emptied: [...new Set([...step.emptied, ...folders])],
      files: [...step.files, ...solution.files],
      profile: solvedBy(spec, solution).profile,
    };
  });
  if (list.length < steps.list.length) return undefined;
  return { ...checkedBy(spec, nothing), steps: { ...steps, list } };
}
