import { readCtrf } from './ctrf.ts';
import { readTap } from './tap.ts';

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

/** Undefined where the output is no report. */
export async function readTestReport(stdout: string): Promise<TestReport | undefined> {
  const text = stdout.trimStart();
  if (/^(TAP version 1[34]\b|1\.\.\d+|(not )?ok\b)/.test(text)) return readTap(text);
  if (/^<(\?xml|testsuites?\b)/.test(text)) {
    // Its parser is loaded by those who need it.
    const { readJunit } = await import('./junit.ts');
    return readJunit(text);
  }
  if (text.startsWith('{')) return readCtrf(text);
  return undefined;
}
