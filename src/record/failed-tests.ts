import { printedText } from '../bounds/anyone.ts';

/**
 * How test runners print the name of a test that failed. The lines are what a program printed, perhaps an
 * agent's, so each pattern reads a line once, from its beginning.
 */
const patterns: readonly RegExp[] = [
  // pytest: FAILED test_a.py::test_b - assert 1 == 2
  /^(?:FAILED|ERROR) (?=\S*\.py)((?:(?! - ).)+)/,
  // Go: --- FAIL: TestSum (0.00s)
  /^\s*--- FAIL: (\S+)/,
  // Cargo: test tests::sums ... FAILED
  /^test (\S+) \.\.\. FAILED$/,
  // unittest: FAIL: test_sum (tests.TestSum)
  /^(?:FAIL|ERROR): (\S+ \([^()]+\))$/,
  // Vitest: FAIL  sum.test.ts > adds
  /^\s*FAIL\s+(\S+ > .+)$/,
  // Jest: ● sum › adds
  /^\s*● (\S.*)$/,
  // node --test: ✖ adds (1.2ms)
  /^\s*✖ (\S.*)$/,
  // TAP: not ok 3 - adds
  /^\s*not ok \d+ (?:- )?(\S.*)$/,
];

/** Each line that a pattern matches has one of these, so that most lines are read once. */
const marks = ['FAIL', 'ERROR', '●', '✖', 'not ok'];

/** Lines that look like a failed test, but are the heading of a list or a test that may fail. */
const others = /^failing tests:$|#\s*(?:todo|skip)\b/i;
const duration = / \([\d.]+ ?m?s\)$/;

/** A failed test, and the place of the line that first names it. */
export interface FailedTest {
  name: string;
  at: number;
}

/** The tests that failed, in the order of the output, each once. Empty if the output names none. */
export function failedTests(lines: readonly string[]): FailedTest[] {
  const read = lines
    .map((line, at) => ({ line: line.slice(0, printedText.bytes.line), at }))
    .filter(({ line }) => marks.some((mark) => line.includes(mark)))
    .map(({ line, at }) => ({ line: line.trimEnd(), at }));
  // A runner prints its tests in one form; another form is what a test printed itself.
  for (const pattern of patterns) {
    const tests = new Map<string, FailedTest>();
    for (const { line, at } of read) {
      const given = pattern.exec(line)?.[1];
      if (given === undefined || others.test(given)) continue;
      const name = given.replace(duration, '');
      if (!tests.has(name)) tests.set(name, { name, at });
    }
    if (tests.size > 0) return [...tests.values()];
  }
  return [];
}
