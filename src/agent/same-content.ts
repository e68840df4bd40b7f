import { isDeepStrictEqual } from 'node:util';
import type { ListedTrial } from '../client/pages/run-parts.ts';
import type { ReportedTrial } from '../contract/report.ts';

/**
 * Whether a service's record of a trial comes from this report. The id of the sandbox decides, because no two
 * attempts have the same one. Without it, both must be void or neither, all fields that both have must be
 * equal, and one of them must be a measurement that hardly any two attempts have in common.
 */
export function isSameContent(recorded: ListedTrial, { sandboxId, outcome, usage }: ReportedTrial): boolean {
  if (recorded.sandboxId !== undefined && sandboxId !== undefined) return recorded.sandboxId === sandboxId;
  if ((recorded.status === 'voided') !== (outcome.passed === undefined)) return false;
  const measured = pairsOf([
    [recorded.modelMs, outcome.modelMs],
    [recorded.sandboxMs, outcome.sandboxMs],
    [recorded.usage?.totalTokens, usage?.totalTokens],
    [hashesOf(recorded.artifacts), hashesOf(outcome.artifacts)],
  ]);
  const others = pairsOf([
    [recorded.exitCode, outcome.exitCode],
    [recorded.commands, outcome.commandCount],
    [recorded.verifySteps, outcome.verifySteps],
    [recorded.validations?.map(verdictOf), outcome.validations?.map(verdictOf)],
  ]);
  const isDistinctive = ([one]: Pair) => one !== 0 && !(Array.isArray(one) && one.length === 0);
  return (
    measured.some(isDistinctive) &&
    [...measured, ...others].every(([one, other]) => isDeepStrictEqual(one, other))
  );
}

type Pair = readonly [unknown, unknown];

function pairsOf(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(([one, other]) => one !== undefined && other !== undefined);
}

function hashesOf(artifacts: ListedTrial['artifacts']): string[] | undefined {
  return artifacts?.map(({ path, sha256 }) => `${sha256} ${path}`).sort();
}

function verdictOf({ name, exitCode }: { name: string; exitCode?: number | undefined }): string {
  return `${exitCode} ${name}`;
}
