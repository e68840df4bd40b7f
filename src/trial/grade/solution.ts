import type { CaseOracle } from '../../suite/case-tests.ts';
import { expandVariables, type Variables } from '../../suite/variables.ts';
import { shellWord } from '../../text/escape.ts';
import type { TrialSandbox } from '../phase.ts';
import type { TrialSolution, TrialSpec } from '../spec.ts';

/** The solution of a case: a script, or a command with its files. Undefined if it has none. */
export function solutionOf(
  { solution, oracle }: { solution?: string | undefined; oracle?: CaseOracle | undefined },
  variables: Variables,
): TrialSolution | undefined {
  if (oracle) {
    const { files, command, env } = oracle;
    return { files, run: command.map(shellWord).join(' '), env };
  }
  return solution === undefined
    ? undefined
    : { files: [], run: expandVariables(solution, variables, 'keep'), env: {} };
}

/** The trial with the solution in place of its agent. It asks no model. */
export function solvedBy(spec: TrialSpec, { run, env }: TrialSolution): TrialSpec {
  const own = { run, env: { ...spec.profile.env, ...env }, stream: undefined, trajectory: undefined };
  const profile = { ...spec.profile, ...own };
  const none = { model: 'none', modelConfig: undefined, user: undefined };
  // Nothing is hidden from it.
  const open = { answers: undefined, hidesLaterCommits: undefined };
  return { ...spec, profile, harness: 'command', ...none, ...open };
}

/** How a trial without steps is solved. Undefined if nobody says how. */
export function wholeSolution(spec: TrialSpec): TrialSandbox['solve'] {
  const { solution } = spec;
  return solution && ((_, run) => run(solution, spec));
}
