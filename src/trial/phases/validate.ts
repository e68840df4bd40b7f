import { randomBytes } from 'node:crypto';
import type { Container } from '../../engine/container.ts';
import { variablesAsEnvironment } from '../../suite/variables.ts';
import { runValidator, type ValidatorRun } from '../../validate/validator.ts';
import { verdictOf } from '../../validate/verdict.ts';
import { gradingPrevented } from '../control.ts';
import { gradingEnvironment } from '../environment.ts';
import { places } from '../places.ts';
import type { Cause, TrialResult } from '../result.ts';
import type { ValidatorSpec } from '../spec.ts';
import type { Phase, PhaseInput } from './phase.ts';

/** Runs the case's validator, and comes to the verdict. */
export const validate: Phase = { name: 'validate', run };

async function run(input: PhaseInput): Promise<Partial<TrialResult>> {
  const { spec, container, found } = input;
  const { validator } = spec;
  const { validations, trouble } = validator
    ? await validated(validator, container, input)
    : { validations: [] };
  if (validator && trouble) {
    const { kind, ...told } = trouble;
    const cause: Cause = { kind: 'grading', phase: 'validate', ...told };
    if (kind === 'broken') return { validations, verdict: 'void', cause };
    return gradingPrevented(input, cause, async (fresh) => {
      const control = await validated(validator, fresh, input);
      return control.trouble?.kind !== 'not-started';
    });
  }
  const verdict = verdictOf({ verifySteps: found.verifySteps ?? [], validations, judgments: [] });
  if (verdict !== 'void') return { validations, judgments: [], verdict };
  const cause: Cause = { kind: 'task', phase: 'validate', message: 'there was nothing to check' };
  return { validations, judgments: [], verdict, cause };
}

async function validated(
  validator: ValidatorSpec,
  container: Container,
  { spec, signal, found }: PhaseInput,
): Promise<ValidatorRun> {
  // Verify runs what the harness wrote: a process of that must not touch what is graded either.
  if (spec.verify !== undefined) await container.killAll(signal);
  return runValidator({
    container,
    ...validator,
    // Where the harness cannot have put anything beforehand, such as a package of a name that the validator imports.
    folder: `${places.validators}/${randomBytes(8).toString('hex')}`,
    workspace: places.workspace,
    env: gradingEnvironment(spec.variables),
    variables: variablesAsEnvironment(spec.variables),
    trajectory: found.trajectory ?? [],
    timeoutMs: spec.sandbox.timeouts.validator,
    signal,
  });
}
