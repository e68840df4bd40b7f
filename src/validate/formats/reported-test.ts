/** One result of a program's printed report. */
export interface ReportedTest {
  name: string;
  /** A skipped test counts as passed, as its report means it; the message says that it was. */
  passed: boolean;
  message?: string;
  durationMs?: number;
  /** What the report holds beyond the message. */
  detail?: string;
}

/** Results that a program printed: as TAP, as JUnit XML or as CTRF JSON, told by how its output begins. */
export type TestReport =
  | { format: 'tap' | 'junit' | 'ctrf'; tests: ReportedTest[] }
  /** It begins as a report does and is none. */
  | { format: 'tap' | 'junit' | 'ctrf'; problem: string };
