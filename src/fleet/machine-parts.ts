import { OffsiteError } from '../offsite-error.ts';
import type { Config } from '../suite/config-file.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import type { SuitePlan } from '../suite/plan.ts';

/**
 * Throws `FLEET_MACHINE_PARTS` for a plan that names folders of the machine that read its suite. Other machines do
 * not have them; what a stranger names there must not be read.
 */
export function refuseMachineParts({ cases }: SuitePlan): void {
  for (const { request, local } of cases) {
    const steps = local.steps?.list ?? [];
    const tests = [local.tests, ...steps.map((step) => step.tests)];
    const environments = [local.environment, ...tests.map((one) => one?.fresh?.environment)];
    const hint = environments.map((one) => one && machinePartOf(one)).find((one) => one !== undefined);
    if (hint === undefined) continue;
    throw new OffsiteError(`the case ${request.id} needs a folder that only one machine has`, {
      ...{ code: 'FLEET_MACHINE_PARTS', kind: 'input', hint },
    });
  }
}

/** What to do about it; undefined if an environment names no folder. */
function machinePartOf({ build, source, services = [] }: CaseEnvironment): string | undefined {
  if (build !== undefined || services.some((service) => service.build !== undefined))
    return 'Build the image once, push it to a registry that the workers reach, and name it as image.';
  if (source !== undefined)
    return 'Put the files of the repository into an image, or let prepare fetch them; source is read on one machine.';
  return undefined;
}

/**
 * Throws `FLEET_PASS_ENV` for a plan whose sandboxes get variables that no sandbox of this machine's own
 * configuration gets: who starts batches does not decide which variables leave this machine.
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
