/** What is read of vitest's JSON report, which is that of Jest. */
export interface TestReport {
  testResults: FileResult[];
}

export interface FileResult {
  /** The file's absolute path. */
  name: string;
  status: 'passed' | 'failed';
  /** Milliseconds of the clock. */
  startTime: number;
  endTime: number;
  assertionResults: {
    fullName: string;
    status: 'passed' | 'failed' | 'skipped' | 'pending' | 'todo' | 'disabled';
    failureMessages?: string[] | null;
  }[];
}

export interface TestCount {
  passed: number;
  failed: number;
}

/**
 * At most this many files are run once more, alone. If more fail, something is broken rather than unsteady.
 */
const maxRerunFiles = 6;

/**
 * The files whose failure may come from what ran beside them: paths to run once more, alone. None if too many
 * failed, or if the run ended before it had a report.
 */
export function filesToRerun(report: TestReport | undefined): string[] {
  const failed = (report?.testResults ?? []).filter(({ status }) => status === 'failed');
  return failed.length > maxRerunFiles ? [] : failed.map(({ name }) => name);
}

/** The tests that did not run, a line each, with the reason that their titles give. */
export function skippedTests(report: TestReport | undefined): string[] {
  const all = (report?.testResults ?? []).flatMap((file) => file.assertionResults);
  return all
    .filter(({ status }) => status !== 'passed' && status !== 'failed')
    .map(({ fullName }) => fullName);
}

/** The report of both runs: a file that ran again counts as it ended the second time. */
export function mergeReports(first: TestReport, second: TestReport): TestReport {
  const again = new Map(second.testResults.map((file) => [file.name, file]));
  return { testResults: first.testResults.map((file) => again.get(file.name) ?? file) };
}

/** The tests that failed beside others and passed alone, a line each with the first line of what failed. */
export function unsteadyTests(first: TestReport, merged: TestReport): string[] {
  const passed = new Set(
    merged.testResults.filter(({ status }) => status === 'passed').map(({ name }) => name),
  );
  return first.testResults
    .filter(({ name, status }) => status === 'failed' && passed.has(name))
    .flatMap(({ name, assertionResults }) => {
      const failed = assertionResults.filter(({ status }) => status === 'failed');
      if (failed.length === 0) return [`${name}: did not load, or a hook failed`];
      return failed.map(({ fullName, failureMessages }) => {
        const [reason = ''] = (failureMessages?.[0] ?? '').split('\n');
        return `${name} > ${fullName}: ${reason}`;
      });
    });
}

/**
 * Counts the tests in vitest's JSON report (undefined if it wrote none). A run without any test counts as one
 * failure. So does a run that failed without a failed test, for example because a file does not load.
 */
export function countTests(report: TestReport | undefined, exitCode: number): TestCount {
  const tests = (report?.testResults ?? []).flatMap((file) => file.assertionResults);
  const passed = tests.filter(({ status }) => status === 'passed').length;
  const failed = tests.filter(({ status }) => status === 'failed').length;
  const ran = passed + failed > 0;
  const unexplained = exitCode !== 0 && failed === 0;
  return { passed, failed: !ran || unexplained ? 1 : failed };
}

/** The last line, which other programs read. */
export function summaryLine({ passed, failed }: TestCount): string {
  return `${passed} passed, ${failed} failed`;
}
