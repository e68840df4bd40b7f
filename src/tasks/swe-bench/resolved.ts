import type { RewardReading } from '../task.ts';

type NamedTests = Extract<RewardReading, { kind: 'named-tests' }>;

/** Repositories whose tests are graded by those that the patch should fix, and no others. */
const failToPassOnly: ReadonlySet<string> = new Set([
  'chartjs/Chart.js',
  'markedjs/marked',
  'processing/p5.js',
]);

export interface Resolution {
  /** Whether all tests that count have passed. */
  resolved: boolean;
  /** The tests that count and did not pass. A test without a result is among them. */
  failed: readonly string[];
}

/**
 * Whether a row of SWE-bench is resolved, by the results of tests after its test patch.
 *
 * @param repo as the row names it
 */
export function resolution(
  { failToPass, passToPass }: NamedTests,
  results: ReadonlyMap<string, 'passed' | 'failed'>,
  repo: string,
): Resolution {
  const counting = failToPassOnly.has(repo) ? failToPass : [...failToPass, ...passToPass];
  const failed = counting.filter((test) => results.get(test) !== 'passed');
  return { resolved: counting.length > 0 && failed.length === 0, failed };
}
