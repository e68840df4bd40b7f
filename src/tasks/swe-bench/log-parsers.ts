import { rewards } from '../../bounds/tasks.ts';

/** The results of tests by their names, or why there are none. */
export type ReadLog = { kind: 'results'; results: NamedResults } | { kind: 'none'; problem: string };

/** How the parser of each name reads what test runners print. */
export const logParsers: Readonly<Record<'pytest' | 'pytest-v' | 'django', (output: string) => ReadLog>> = {
  pytest: (output) => readLines(output, pytestSummary()),
  'pytest-v': (output) => readLines(output, pytestVerbose),
  django: (output) => readLines(output, django()),
};

type ReadLine = (line: string, results: NamedResults) => void;

function readLines(output: string, read: ReadLine): ReadLog {
  if (output.length > rewards.bytes.output)
    return { kind: 'none', problem: 'the output of the tests is too long to be read' };
  const results = new NamedResults();
  for (const line of plainLines(output)) {
    read(line, results);
    if (results.size > rewards.count.tests)
      return { kind: 'none', problem: `the output has more than ${rewards.count.tests} results` };
  }
  if (results.size > 0) return { kind: 'results', results };
  return { kind: 'none', problem: 'the output names no test with its result' };
}

const statuses: Readonly<Record<string, NamedResult>> = {
  PASSED: 'passed',
  XFAIL: 'passed',
  SKIPPED: 'skipped',
  FAILED: 'failed',
  ERROR: 'failed',
  XPASS: 'failed',
};

/** `FAILED tests/test_a.py::test_b[c d] - AssertionError: e`, in a short summary. */
function pytestSummary(): ReadLine {
  let isSummary = false;
  return (line, results) => {
    if (/^=+\s*short test summary info\s*=+$/.test(line)) isSummary = true;
    else if (/^=.*=$/.test(line)) isSummary = false;
    const [, status, rest = ''] =
      (isSummary && /^(PASSED|XFAIL|FAILED|ERROR|XPASS)\s+(.+)$/.exec(line)) || [];
    if (status === undefined) return;
    // A parameter may have a dash too: a failure counts for each name that the line may mean.
    const cuts = status === 'PASSED' ? [] : cutsOf(rest);
    const result = statuses[status] ?? 'failed';
    const names = cuts.length === 0 ? [rest] : result === 'failed' ? cuts : [cuts.find(isWhole) ?? rest];
    for (const name of names) results.add(name, result);
  };
}

/** The texts before each dash: at most one more than the number of results that are allowed. */
function cutsOf(text: string): string[] {
  const cuts: string[] = [];
  for (let at = text.indexOf(' - '); at !== -1 && cuts.length <= rewards.count.tests; ) {
    cuts.push(text.slice(0, at));
    at = text.indexOf(' - ', at + 3);
  }
  return cuts;
}

/** Whether the brackets of a name's parameters are closed. */
function isWhole(name: string): boolean {
  return !name.includes('[') || name.endsWith(']');
}

/**
 * `tests/test_a.py::test_b[c d] PASSED [ 10%]`, also with a reason: `SKIPPED (why)`. One regular expression
 * for the whole line could take minutes for a long line that was made for this purpose.
 */
const pytestVerbose: ReadLine = (line, results) => {
  const colons = line.indexOf('::', 1);
  if (colons === -1 || /\s/.test(line.slice(0, colons))) return;
  const said = line.replace(/\s\[\s*\d+%\]$/, '').trimEnd();
  for (const { 1: status = '', index } of said.matchAll(
    /\s(PASSED|XFAIL|SKIPPED|FAILED|ERROR|XPASS)(?=\s|$)/g,
  )) {
    const end = index + 1 + status.length;
    reason.lastIndex = end;
    if (end < said.length && !(said.endsWith(')') && reason.test(said))) continue;
    const name = said.slice(0, index).trimEnd();
    if (name.length > colons + 2) results.add(name, statuses[status] ?? 'failed');
    return;
  }
};

const reason = /\s+\(/y;

/**
 * `test_a (module.Class) ... ok`, as unittest prints it. What a test prints may stand between its name and
 * its result. If a test has a description, the line has the description in place of the name.
 */
function django(): ReadLine {
  let test: string | undefined;
  return (line, results) => {
    const [, problem] = /^(?:FAIL|ERROR): (.+)$/.exec(line) ?? [];
    if (problem !== undefined) results.add(problem, 'failed');
    const at = line.indexOf(' ... ');
    if (at !== -1) test = line.slice(0, at);
    const outcome = unittestOutcomes.exec(at === -1 ? line : line.slice(at + 5))?.[1];
    if (test === undefined || outcome === undefined) return;
    const passed = /^(ok|OK|expected failure)$/.test(outcome);
    results.add(test, passed ? 'passed' : outcome.startsWith('skipped') ? 'skipped' : 'failed');
  };
}

const unittestOutcomes = /(?:^|\s)(ok|OK|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)$/;

interface NamedTests {
  failToPass: readonly string[];
  passToPass: readonly string[];
}

interface Resolution {
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

export type NamedResult = 'passed' | 'skipped' | 'failed';

const order: readonly NamedResult[] = ['passed', 'skipped', 'failed'];

/**
 * The results of tests by their names. Of several results of one name the worst counts. Rows name tests up to
 * the first blank, so a name with blanks counts under its first word too.
 */
export class NamedResults {
  readonly #results = new Map<string, NamedResult>();

  add(name: string, result: NamedResult): void {
    const [word = name] = name.split(/\s/, 1);
    for (const each of new Set([name, word])) {
      const known = this.#results.get(each);
      if (known === undefined || order.indexOf(known) < order.indexOf(result))
        this.#results.set(each, result);
    }
  }

  get size(): number {
    return this.#results.size;
  }

  of(name: string): NamedResult | undefined {
    return this.#results.get(name);
  }
}

type TestStatus = 'passed' | 'failed';

/** The results of tests by their names, or why there are none. */
type PrintedTests =
  | { kind: 'tests'; tests: ReadonlyMap<string, TestStatus> }
  | { kind: 'none'; problem: string };

/** How the parser of each name reads what a verifier printed. */
export const printedTestParsers: Readonly<Record<'pytest' | 'swebench', (output: string) => PrintedTests>> = {
  pytest: parsePytest,
  swebench: parseSweBench,
};

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
function parseSweBench(output: string): PrintedTests {
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

/** `ESC [`, or its one character; parameters; a letter. */
const control = String.raw`(?:\u001b\[|\u009b)[0-?]*[ -\/]*[@-~]`;

/** `ESC ]`, a text, and its end. */
const title = String.raw`\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)`;

/** The choice of a character set, and `ESC` with one other character. */
const short = String.raw`\u001b(?:[()#][\dA-Za-z]|[\dA-Z\\^_a-z=>])`;

/**
 * What terminals do not show. The work that is graded may print anything, so the time must be linear in the
 * length: no two adjacent parts match the same characters.
 */
const hidden = new RegExp(`${control}|${title}|${short}`, 'g');

/** The lines of what a program printed, without colours and without blanks around them. */
function plainLines(output: string): string[] {
  return output
    .replace(hidden, '')
    .split(/\r\n|\n|\r/)
    .map((line) => line.trim());
}
