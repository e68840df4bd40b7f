import { OffsiteError } from '../base/offsite-error.ts';
import type { Config } from '../suite/config-file.ts';
import { environmentsOf } from '../suite/environment-content.ts';
import type { SuitePlan } from '../suite/plan.ts';

/**
 * Throws `FLEET_MACHINE_PARTS` for a plan that names a repository on the machine that read its suite. Other
 * machines do not have it, and must not read a path that somebody else chose.
 */
export function refuseMachineParts({ cases }: SuitePlan): void {
  for (const planned of cases) {
    if (environmentsOf(planned).every(({ source }) => source === undefined)) continue;
    throw new OffsiteError(`the case ${planned.request.id} needs a repository that only one machine has`, {
      code: 'FLEET_MACHINE_PARTS',
      kind: 'input',
      hint: 'Put its files into an image, or let prepare fetch them.',
    });
  }
}

/**
 * Throws `FLEET_PASS_ENV` for a plan whose sandboxes get variables that no sandbox of this machine's own
 * configuration gets: whoever starts a batch must not decide which variables leave this machine.
 */
export function refuseOtherVariables(
  { variants }: SuitePlan,
  { sandboxes }: Pick<Config, 'sandboxes'>,
): void {
  const own = new Set(Object.values(sandboxes).flatMap(({ passEnv }) => passEnv));
  const other = variants.flatMap(({ sandbox }) => sandbox.passEnv).find((name) => !own.has(name));
  if (other === undefined) return;
  throw new OffsiteError(
    `the batch asks for the variable ${other} of this worker, which gives it to no sandbox`,
    {
      code: 'FLEET_PASS_ENV',
      kind: 'input',
      hint: "Name it in passEnv of a sandbox in the worker's own offsite.yaml, or remove it from the batch's.",
    },
  );
}
