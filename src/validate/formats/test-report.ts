import { readCtrf } from './ctrf.ts';
import type { TestReport } from './reported-test.ts';
import { readTap } from './tap.ts';

/** Reads a program's output as a test report. Undefined if the output is not a report. */
export async function readTestReport(stdout: string): Promise<TestReport | undefined> {
  const text = stdout.trimStart();
  if (/^(TAP version 1[34]\b|1\.\.\d+|(not )?ok\b)/.test(text)) return readTap(text);
  if (/^<(\?xml|testsuites?\b)/.test(text)) {
    // Load the XML parser only if it is needed.
    const { readJunit } = await import('./junit.ts');
    return readJunit(text);
  }
  if (text.startsWith('{')) return readCtrf(text);
  return undefined;
}
