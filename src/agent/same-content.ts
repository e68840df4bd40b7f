import { isDeepStrictEqual } from 'node:util';
import type { Trial } from '../contract/record.ts';
import type { ReportedTrial } from '../contract/report.ts';

/**
 * Whether a service's record of a trial comes from this report. The id of the sandbox decides, because no two
 * attempts have the same one. Without it, all fields that both have must be equal, and there must be one.
 */
export function isSameContent(recorded: Trial, { sandboxId, outcome, usage }: ReportedTrial): boolean {
  if (recorded.sandboxId !== undefined && sandboxId !== undefined) return recorded.sandboxId === sandboxId;
  const pairs = [
    [recorded.exitCode, outcome.exitCode],
    [recorded.commands, outcome.commandCount],
    [recorded.modelMs, outcome.modelMs],
    [recorded.sandboxMs, outcome.sandboxMs],
    [recorded.verifySteps, outcome.verifySteps],
    [hashesOf(recorded.artifacts), hashesOf(outcome.artifacts)],
    [recorded.validations?.map(verdictOf), outcome.validations?.map(verdictOf)],
    [recorded.usage?.totalTokens, usage?.totalTokens],
  ].filter(([one, other]) => one !== undefined && other !== undefined);
  return pairs.length > 0 && pairs.every(([one, other]) => isDeepStrictEqual(one, other));
}

function hashesOf(artifacts: Trial['artifacts']): string[] | undefined {
  return artifacts?.map(({ path, sha256 }) => `${sha256} ${path}`).sort();
}

function verdictOf({ name, exitCode }: { name: string; exitCode?: number | undefined }): string {
  return `${exitCode} ${name}`;
}
