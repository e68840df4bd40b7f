import { validatorGit } from './git-settings.ts';
import { runModule } from './module.ts';
import { runProgram } from './program.ts';
import { judgmentWithoutContent, withoutContent } from './record.ts';
import type { ValidatorRequest, ValidatorRun } from './validator-request.ts';

/**
 * Runs a validator in a sandbox. A source with a shebang runs as a program, and its exit code decides. Any
 * other source is a JavaScript or TypeScript module that declares named validations with `offsite/validator`.
 */
export async function runValidator(request: ValidatorRequest): Promise<ValidatorRun> {
  const asked = { ...request, env: { ...request.env, ...validatorGit } };
  const run = request.source.startsWith('#!') ? await runProgram(asked) : await runModule(asked);
  if (request.capture) return run;
  const { validations, judgments, failure } = run;
  return {
    validations: validations.map(withoutContent),
    judgments: judgments.map(judgmentWithoutContent),
    failure: failure && { kind: failure.kind, message: failure.message },
  };
}
