import { OffsiteError } from '../base/offsite-error.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { orNearest } from '../text/nearest.ts';

/** Options that set for tasks what a suite file sets itself. */
const onlyOfTasks = {
  format: '--format',
  profile: '--profile',
  sandbox: '--sandbox',
  threshold: '--threshold',
  image: '--image',
  build: '--build',
  buildArg: '--build-arg',
  testCommand: '--test-command',
  testParser: '--test-parser',
};

/** Throws an `input` error if one of these options, which do not apply to a suite file, is given with one. */
export function refuseTaskOptions(options: object): void {
  const given = Object.entries(onlyOfTasks).flatMap(([key, name]) =>
    Reflect.get(options, key) === undefined ? [] : [name],
  );
  if (given.length === 0) return;
  const verb = given.length === 1 ? 'is' : 'are';
  throw new OffsiteError(`${given.join(', ')} ${verb} only for --tasks; a suite file has its own settings`, {
    code: 'OPTION_WITHOUT_TASKS',
    kind: 'input',
    hint: 'Change the suite file, or leave the option out.',
  });
}

/** The suite with the variants of these names alone. Throws an `input` error for a name that none has. */
export function withVariants(plan: SuitePlan, names: readonly string[] | undefined): SuitePlan {
  if (names === undefined) return plan;
  const known = plan.variants.map(({ name }) => name);
  for (const name of names)
    if (!known.includes(name))
      throw new OffsiteError(`the suite has no variant ${name}${orNearest(name, known)}`, {
        code: 'VARIANT_UNKNOWN',
        kind: 'input',
        hint: 'With a suite file, --variant takes names of its variants; with --tasks, HARNESS:MODEL.',
      });
  return { ...plan, variants: plan.variants.filter(({ name }) => names.includes(name)) };
}
