import { randomBytes } from 'node:crypto';
import type { Container } from '../../engine/container.ts';
import { variablesAsEnvironment } from '../../suite/variables.ts';
import { runValidator, type ValidatorRun } from '../../validate/validator.ts';
import { copyWorkspace } from '../../validate/workspace-copy.ts';
import { gradingEnvironment } from '../environment.ts';
import { places } from '../places.ts';
import { commandsOf } from '../report.ts';
import type { ValidatorSpec } from '../spec.ts';
import { agentUsage } from '../usage.ts';
import type { PhaseInput } from './phase.ts';

/** `refused`: the harness left nothing that could be shown to the validator. */
export type Validated = ({ kind: 'ran' } & ValidatorRun) | { kind: 'refused'; why: string };

/**
 * Runs the case's validator where its author wants it: in a sandbox that no harness ran in, with a copy of the workspace, or in the
 * harness's own.
 */
export async function validated(validator: ValidatorSpec, input: PhaseInput): Promise<Validated> {
  const { spec, container, sandboxes, found, signal } = input;
  if (validator.runsIn === 'same') return { kind: 'ran', ...(await runIn(container, validator, input)) };
  const own = await sandboxes.validator.container();
  const copied = await copyWorkspace(container, own, places.workspace, {
    maxBytes: spec.sandbox.disk,
    carry: found.carry,
    signal,
  });
  if (copied.kind === 'refused') return copied;
  return { kind: 'ran', ...(await runIn(own, validator, input)) };
}

/** Runs the validator in a sandbox that holds the graded workspace. */
async function runIn(
  container: Container,
  { runsIn, onError, ...validator }: ValidatorSpec,
  { spec, parts, models, signal, found }: PhaseInput,
): Promise<ValidatorRun> {
  const account = await models?.session.account();
  return runValidator({
    container,
    ...validator,
    // Where the harness cannot have put anything beforehand, such as a package of a name that the validator imports.
    folder: `${places.validators}/${randomBytes(8).toString('hex')}`,
    workspace: places.workspace,
    env: gradingEnvironment(spec.variables),
    variables: variablesAsEnvironment(spec.variables),
    trajectory: commandsOf(found) ?? [],
    finalMessage: found.finalMessage,
    usage: account && agentUsage(account),
    filesChanged: found.filesChanged,
    // A sandbox with a user of its own has no second one.
    separate: runsIn === 'fresh' && spec.sandbox.user === undefined,
    judge:
      models && spec.judges.length > 0
        ? (request, stop) => models.session.chat('judge', request, stop)
        : undefined,
    clock: parts.clock,
    timeoutMs: spec.sandbox.timeouts.validator,
    signal,
  });
}
