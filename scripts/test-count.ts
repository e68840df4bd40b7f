export interface TestCount {
  passed: number;
  failed: number;
}

/**
 * Counts the tests in vitest's JSON report (undefined if it wrote none). A run without any test counts as one
 * failure. So does a run that failed without a failed test, for example because a file does not load.
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

/** The last line, which other programs read. */
export function summaryLine({ passed, failed }: TestCount): string {
  return `${passed} passed, ${failed} failed`;
}
