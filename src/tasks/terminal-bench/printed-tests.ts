import { rewards } from '../../bounds/tasks.ts';
import { plainLines } from '../plain-output.ts';

export type TestStatus = 'passed' | 'failed';

/** The results of tests by their names, or why there are none. */
export type PrintedTests =
  | { kind: 'tests'; tests: ReadonlyMap<string, TestStatus> }
  | { kind: 'none'; problem: string };

/** How the parser of each name reads what a verifier printed. */
export const printedTestParsers: Readonly<Record<'pytest' | 'swebench', (output: string) => PrintedTests>> = {
  pytest: parsePytest,
  swebench: parseSweBench,
};

/** Whether a task is solved: there are results, and all tests passed. */
export function allPassed(tests: ReadonlyMap<string, TestStatus>): boolean {
  return tests.size > 0 && [...tests.values()].every((status) => status === 'passed');
}

const summary = /^=+\s*short test summary info\s*=+$/;
const result = /^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+(.+)$/;

/** A test that may fail is no failure. One that should have failed, and did not, is. */
const passing: ReadonlySet<string> = new Set(['PASSED', 'SKIPPED', 'XFAIL']);

/**
 * Reads the short summaries of pytest, as `pytest -rA` prints them. If there are several, a test has failed
 * if one of them says so. An output without a result is never a pass.
 */
export function parsePytest(output: string): PrintedTests {
  const lines = linesOf(output);
  if (lines === undefined) return tooLong;
  const tests = new Map<string, TestStatus>();
  let isSummary = false;
  let summaries = 0;
  for (const line of lines) {
    if (summary.test(line)) {
      isSummary = true;
      summaries += 1;
    } else if (line.startsWith('=') && line.endsWith('=')) isSummary = false;
    const [, status, rest = ''] = (isSummary && result.exec(line)) || [];
    if (status === undefined) continue;
    const name = status === 'FAILED' || status === 'ERROR' ? (rest.split(' - ', 1)[0] ?? rest) : rest;
    if (tests.get(name) !== 'failed') tests.set(name, passing.has(status) ? 'passed' : 'failed');
    if (tests.size > rewards.count.tests)
      return { kind: 'none', problem: `the output has more than ${rewards.count.tests} results` };
  }
  if (tests.size > 0) return { kind: 'tests', tests };
  const problem = summaries === 0 ? 'has no "short test summary info"' : 'names no test in its summary';
  return { kind: 'none', problem: `the output of pytest ${problem}` };
}

/** Reads the one word between the lines that begin and end the results of SWE-bench. */
export function parseSweBench(output: string): PrintedTests {
  const lines = linesOf(output);
  if (lines === undefined) return tooLong;
  const begin = lines.findLastIndex((line) => /^SWEBench results starts? here$/.test(line));
  const end = lines.findIndex((line, index) => index > begin && /^SWEBench results ends? here$/.test(line));
  if (begin === -1 || end === -1) return { kind: 'none', problem: 'the output has no results of SWE-bench' };
  const words = new Set(lines.slice(begin + 1, end).filter((line) => line === 'PASSED' || line === 'FAILED'));
  if (words.size === 0)
    return { kind: 'none', problem: 'the results of SWE-bench say neither PASSED nor FAILED' };
  return { kind: 'tests', tests: new Map([['resolved', words.has('FAILED') ? 'failed' : 'passed']]) };
}

const tooLong: PrintedTests = { kind: 'none', problem: 'the output of the tests is too long to be read' };

function linesOf(output: string): string[] | undefined {
  return output.length > rewards.bytes.output ? undefined : plainLines(output);
}
