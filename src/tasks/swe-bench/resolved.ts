import type { NamedResult } from './named-results.ts';

/** Repositories whose tests are graded by those that the patch should fix, and no others. */
const failToPassOnly: ReadonlySet<string> = new Set([
  'chartjs/Chart.js',
  'markedjs/marked',
  'processing/p5.js',
]);

interface NamedTests {
  failToPass: readonly string[];
  passToPass: readonly string[];
  /** As the row names it. */
  repo: string;
}

export interface Resolution {
  /** Whether all tests that count have passed. */
  resolved: boolean;
  /** The tests that count and did not pass. A test without a result is among them. */
  failed: readonly string[];
  /** How many tests count. */
  counting: number;
}

/**
 * Whether a row of SWE-bench is resolved, by the results of tests after its test patch. A test that passed
 * before may also be skipped.
 */
export function resolution(
  { failToPass, passToPass, repo }: NamedTests,
  resultOf: (test: string) => NamedResult | undefined,
): Resolution {
  const kept = failToPassOnly.has(repo) ? [] : passToPass;
  const failed = [
    ...failToPass.filter((test) => resultOf(test) !== 'passed'),
    ...kept.filter((test) => !['passed', 'skipped'].includes(resultOf(test) ?? 'failed')),
  ];
  const counting = failToPass.length + kept.length;
  return { resolved: counting > 0 && failed.length === 0, failed, counting };
}
