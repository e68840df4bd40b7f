/** One test in a report that a program printed. */
export interface ReportedTest {
  name: string;
  /** A skipped test counts as passed, as its report intends. The message says that it was skipped. */
  passed: boolean;
  message?: string;
  durationMs?: number;
  /** Further text of the report about this test. */
  detail?: string;
}

/**
 * A test report that a program printed: TAP, JUnit XML or CTRF JSON. The beginning of the output decides
 * which.
 */
export type TestReport =
  | { format: 'tap' | 'junit' | 'ctrf'; tests: ReportedTest[] }
  /** The output begins like a report but cannot be read as one. */
  | { format: 'tap' | 'junit' | 'ctrf'; problem: string };
