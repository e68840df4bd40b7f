export interface TestCount {
  passed: number;
  failed: number;
}

/**
 * Counts the tests of vitest's JSON report (undefined when it wrote none). A run without any test, and one that failed
 * without a failed test, such as a file that does not load, count one failure.
 */
export function countTests(report: string | undefined, exitCode: number): TestCount {
  if (report === undefined) return { passed: 0, failed: 1 };
  const { numPassedTests, numFailedTests } = JSON.parse(report) as {
    numPassedTests: number;
    numFailedTests: number;
  };
  const ran = numPassedTests + numFailedTests > 0;
  const unexplained = exitCode !== 0 && numFailedTests === 0;
  return { passed: numPassedTests, failed: !ran || unexplained ? 1 : numFailedTests };
}

/** The closing line, which other programs read. */
export function summaryLine({ passed, failed }: TestCount): string {
  return `${passed} passed, ${failed} failed`;
}
