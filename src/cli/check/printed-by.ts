import { failuresOf, reachesThreshold } from '../../record/failures.ts';
import type { TrialResult } from '../../record/trial-record.ts';

/**
 * The most useful output of a grading that did not pass, in whole lines: the output of what failed before the
 * checks, or else the message and output of each check that failed. Undefined if nothing was printed.
 */
export function printedBy(result: TrialResult): string | undefined {
  const { cause, validations = [], verifySteps = [], judgments = [] } = result;
  const steps = verifySteps.filter(({ exitCode }) => exitCode !== 0).map(({ output }) => output);
  const logsOf = ({ logs = [] }: (typeof validations)[number]) =>
    logs.map(({ value }) => value?.text?.trimEnd() ?? '').join('\n');
  const failed = validations.filter(({ exitCode = 0 }) => exitCode !== 0);
  const said = failed.map((one) => joined([named(one.name, one.message), logsOf(one)]));
  const judged = judgments
    .filter((judgment) => !reachesThreshold(judgment))
    .map(({ name, reason }) => named(name, reason));
  const before = joined([cause?.output]);
  return before ?? joined([...steps, ...said, ...judged]) ?? joined(validations.map(logsOf));
}

/** Why a grading did not pass, in one line; undefined if it passed. */
export function reasonOf(result: TrialResult): string | undefined {
  return result.cause?.message ?? failuresOf(result)[0];
}

function named(name: string, said: string | undefined): string | undefined {
  return said?.trim() ? `${name}: ${said}` : undefined;
}

/** The texts that say something, each with its own lines; undefined if none does. */
function joined(texts: readonly (string | undefined)[]): string | undefined {
  const nonEmpty = texts.flatMap((text) => (text?.trim() ? [text.trimEnd()] : []));
  return nonEmpty.length === 0 ? undefined : nonEmpty.join('\n');
}
