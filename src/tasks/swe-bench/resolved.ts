import type { NamedResult } from './named-results.ts';

interface NamedTests {
  failToPass: readonly string[];
  passToPass: readonly string[];
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
  { failToPass, passToPass }: NamedTests,
  resultOf: (test: string) => NamedResult | undefined,
): Resolution {
  const failed = [
    ...failToPass.filter((test) => resultOf(test) !== 'passed'),
    ...passToPass.filter((test) => !['passed', 'skipped'].includes(resultOf(test) ?? 'failed')),
  ];
  const counting = failToPass.length + passToPass.length;
  return { resolved: counting > 0 && failed.length === 0, failed, counting };
}
