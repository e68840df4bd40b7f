import { randomBytes } from 'node:crypto';
import type { Container } from '../../engine/container.ts';
import { commandsOf } from '../../record/timeline.ts';
import { agentUsage } from '../../record/usage.ts';
import type { Sandbox } from '../../suite/plan.ts';
import { variablesAsEnvironment } from '../../suite/variables.ts';
import { runValidator } from '../../validate/validator.ts';
import type { ValidatorRun } from '../../validate/validator-request.ts';
import type { WorkSandbox } from '../../validate/work/work.ts';
import { copyWorkspace } from '../../validate/workspace-copy.ts';
import { gradingEnvironment } from '../environment.ts';
import { sandboxPaths } from '../sandbox-paths.ts';
import type { ValidatorSpec } from '../spec.ts';
import type { StartedSandbox } from '../started-sandbox.ts';
import { leftOutOf } from '../workspace/protected.ts';
import type { PhaseInput } from './phase.ts';

/** `refused`: the harness left no workspace that could be copied for the validator. */
export type Validated = ({ kind: 'ran' } & ValidatorRun) | { kind: 'refused'; why: string };

/**
 * Runs the case's validator in a sandbox in which no harness ran, with a copy of the workspace. The work runs
 * there too, or in the harness's own sandbox if the author sets `runsIn: same`.
 */
export async function validated(validator: ValidatorSpec, input: PhaseInput): Promise<Validated> {
  const { spec, container, sandboxes, found, signal } = input;
  const { container: own, closedEnv, validatorNode: node } = await sandboxes.validator.sandbox();
  const copied = await copyWorkspace(container, own, {
    maxBytes: input.preparedBytes + spec.sandbox.disk,
    carry: found.carry,
    packed: found.packed,
    leftOut: leftOutOf(spec),
    signal,
  });
  if (copied.kind === 'refused') return { kind: 'refused', why: `the workspace ${copied.why}` };
  // The copied workspace does not count as written by the validator.
  await own.forgiveDisk(signal);
  const sandbox: WorkSandbox =
    validator.runsIn === 'same' ? { kind: 'apart', container } : inOwnSandbox(own, spec.sandbox);
  return { kind: 'ran', ...(await runIn(own, validator, input, { closedEnv, node, work: sandbox })) };
}

/**
 * A strict sandbox has no root that could give the workspace to another user, so there the work runs as the
 * sandbox's own user.
 */
function inOwnSandbox(container: Container, { security, user }: Sandbox): WorkSandbox {
  const own = security === 'strict' && user !== undefined;
  return { kind: 'beside', container, user: own ? { own: user } : 'nobody' };
}

/** Runs the validator in a sandbox that holds the graded workspace. */
async function runIn(
  container: Container,
  { runsIn, onError, ...validator }: ValidatorSpec,
  { spec, parts, models, signal, found }: PhaseInput,
  {
    closedEnv,
    node,
    work,
  }: Pick<StartedSandbox, 'closedEnv'> & { node: string | undefined; work: WorkSandbox },
): Promise<ValidatorRun> {
  // In a later grading, the account of the models is in the record of the trial.
  const account = found.models ?? (await models?.session.account());
  const { variables, gradingVariables = variables } = spec;
  return runValidator({
    container,
    ...validator,
    // A random name, so that the harness cannot have put anything there beforehand, such as a package with a
    // name that the validator imports.
    folder: `${sandboxPaths.validators}/${randomBytes(8).toString('hex')}`,
    workspace: container.workingDir,
    ...(node !== undefined && { node }),
    // The validator must not run or load what the agent put into the workspace.
    env: { ...gradingEnvironment(gradingVariables, container), ...closedEnv },
    variables: variablesAsEnvironment(gradingVariables),
    trajectory: commandsOf(found) ?? [],
    finalMessage: found.finalMessage,
    usage: account && agentUsage(account),
    filesChanged: found.filesChanged,
    work,
    judge:
      models && spec.judges.length > 0
        ? (request, stop) => models.session.chat('judge', request, stop)
        : undefined,
    clock: parts.clock,
    timeoutMs: spec.sandbox.timeouts.validator,
    signal,
  });
}
