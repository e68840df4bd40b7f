import { rewards } from '../../bounds/tasks.ts';

export type NamedResult = 'passed' | 'skipped' | 'failed';

/** The results of tests by their names, or why there are none. */
export type ReadLog =
  | { kind: 'results'; results: ReadonlyMap<string, NamedResult> }
  | { kind: 'none'; problem: string };

type Results = Iterable<[name: string, result: NamedResult]>;

/** How the parser of each name reads the results of tests that are asked for by their names. */
export const logParsers = {
  pytest: (output) => readLog(output, (lines) => withFirstWords(pytestSummary(lines))),
  'pytest-v': (output) => readLog(output, (lines) => withFirstWords(pytestVerbose(lines))),
  django: (output) => readLog(output, (lines) => withFirstWords(django(lines))),
} as const satisfies Record<string, (output: string) => ReadLog>;

/** How the parser of each name reads what a verifier printed of all of its tests. */
export const printedTestParsers = {
  pytest: (output) => readLog(output, pytestTests, (lines) => `the output of pytest ${pytestProblem(lines)}`),
  swebench: (output) => readLog(output, sweBench, sweBenchProblem),
} as const satisfies Record<string, (output: string) => ReadLog>;

/** Of several results of one name the worst counts. An output without a result is never a pass. */
function readLog(
  output: string,
  read: (lines: string[]) => Results,
  whyNone = (_lines: string[]) => 'the output names no test with its result',
): ReadLog {
  if (output.length > rewards.bytes.output)
    return { kind: 'none', problem: 'the output of the tests is too long to be read' };
  const lines = plainLines(output);
  const results = new Map<string, NamedResult>();
  for (const [name, result] of read(lines)) {
    keepWorst(results, name, result);
    if (results.size > rewards.count.tests)
      return { kind: 'none', problem: `the output has more than ${rewards.count.tests} results` };
  }
  return results.size > 0 ? { kind: 'results', results } : { kind: 'none', problem: whyNone(lines) };
}

const order: readonly NamedResult[] = ['passed', 'skipped', 'failed'];

function keepWorst(results: Map<string, NamedResult>, name: string, result: NamedResult): void {
  const known = results.get(name);
  if (known === undefined || order.indexOf(known) < order.indexOf(result)) results.set(name, result);
}

/** The results by the names that {@link withFirstWords} gives them. */
export function resultsByName(results: Results): ReadonlyMap<string, NamedResult> {
  const byName = new Map<string, NamedResult>();
  for (const [name, result] of withFirstWords(results)) keepWorst(byName, name, result);
  return byName;
}

/** Rows name tests up to the first blank, so a name with blanks counts under its first word too. */
function* withFirstWords(results: Results): Results {
  for (const [name, result] of results) {
    yield [name, result];
    const [word = name] = name.split(/\s/, 1);
    if (word !== name) yield [word, result];
  }
}

/** A test that may fail is no failure. One that should have failed, and did not, is. */
const statuses: Readonly<Record<string, NamedResult>> = {
  PASSED: 'passed',
  XFAIL: 'passed',
  SKIPPED: 'skipped',
  FAILED: 'failed',
  ERROR: 'failed',
  XPASS: 'failed',
};

/**
 * `FAILED tests/test_a.py::test_b[c d] - AssertionError: e`, in the short summaries that `pytest -rA` prints.
 */
function* summaryLines(lines: string[]): Generator<{ status: string; result: NamedResult; rest: string }> {
  let isSummary = false;
  for (const line of lines) {
    if (summary.test(line)) isSummary = true;
    else if (line.startsWith('=') && line.endsWith('=')) isSummary = false;
    const [, status = '', rest = ''] = (isSummary && /^([A-Z]+)\s+(.+)$/.exec(line)) || [];
    const result = Object.hasOwn(statuses, status) ? statuses[status] : undefined;
    if (result) yield { status, result, rest };
  }
}

const summary = /^=+\s*short test summary info\s*=+$/;

function* pytestSummary(lines: string[]): Results {
  for (const { status, result, rest } of summaryLines(lines)) {
    // It has a count and a place in place of a name.
    if (status === 'SKIPPED') continue;
    // A parameter may have a dash too: a failure counts for each name that the line may mean.
    const cuts = status === 'PASSED' ? [] : cutsOf(rest);
    const names = cuts.length === 0 ? [rest] : result === 'failed' ? cuts : [cuts.find(isWhole) ?? rest];
    for (const name of names) yield [name, result];
  }
}

/** Each line of the summary counts as a test. */
function* pytestTests(lines: string[]): Results {
  for (const { status, result, rest } of summaryLines(lines)) {
    const [name = rest] = status === 'FAILED' || status === 'ERROR' ? rest.split(' - ', 1) : [rest];
    yield [name, result === 'failed' ? 'failed' : 'passed'];
  }
}

function pytestProblem(lines: string[]): string {
  const hasSummary = lines.some((line) => summary.test(line));
  return hasSummary ? 'names no test in its summary' : 'has no "short test summary info"';
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
function* pytestVerbose(lines: string[]): Results {
  for (const line of lines) {
    const colons = line.indexOf('::', 1);
    if (colons === -1 || /\s/.test(line.slice(0, colons))) continue;
    const said = line.replace(/\s\[\s*\d+%\]$/, '').trimEnd();
    for (const { 1: status = '', index } of said.matchAll(
      /\s(PASSED|XFAIL|SKIPPED|FAILED|ERROR|XPASS)(?=\s|$)/g,
    )) {
      const end = index + 1 + status.length;
      reason.lastIndex = end;
      if (end < said.length && !(said.endsWith(')') && reason.test(said))) continue;
      const name = said.slice(0, index).trimEnd();
      if (name.length > colons + 2) yield [name, statuses[status] ?? 'failed'];
      break;
    }
  }
}

const reason = /\s+\(/y;

/**
 * `test_a (module.Class) ... ok`, as unittest prints it. What a test prints may stand between its name and
 * its result. If a test has a description, the line has the description in place of the name.
 */
function* django(lines: string[]): Results {
  let test: string | undefined;
  for (const line of lines) {
    const [, problem] = /^(?:FAIL|ERROR): (.+)$/.exec(line) ?? [];
    if (problem !== undefined) yield [problem, 'failed'];
    const at = line.indexOf(' ... ');
    if (at !== -1) test = line.slice(0, at);
    const outcome = unittestOutcomes.exec(at === -1 ? line : line.slice(at + 5))?.[1];
    if (test === undefined || outcome === undefined) continue;
    const passed = /^(ok|OK|expected failure)$/.test(outcome);
    yield [test, passed ? 'passed' : outcome.startsWith('skipped') ? 'skipped' : 'failed'];
  }
}

const unittestOutcomes = /(?:^|\s)(ok|OK|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)$/;

/** One word between the lines that begin and end the results of SWE-bench. */
function* sweBench(lines: string[]): Results {
  for (const word of sweBenchLines(lines) ?? [])
    if (word === 'PASSED' || word === 'FAILED') yield ['resolved', word === 'PASSED' ? 'passed' : 'failed'];
}

function sweBenchLines(lines: string[]): string[] | undefined {
  const begin = lines.findLastIndex((line) => /^SWEBench results starts? here$/.test(line));
  const end = lines.findIndex((line, index) => index > begin && /^SWEBench results ends? here$/.test(line));
  return begin === -1 || end === -1 ? undefined : lines.slice(begin + 1, end);
}

function sweBenchProblem(lines: string[]): string {
  return sweBenchLines(lines)
    ? 'the results of SWE-bench say neither PASSED nor FAILED'
    : 'the output has no results of SWE-bench';
}

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
