import type { ReportedTest, TestReport } from './reported-test.ts';

const result = /^(not )?ok\b\s*(\d+)?\s*(?:- )?(.*)$/;
const plan = /^1\.\.(\d+)/;
const directive = /(?:^|\s)#\s*(skip|todo)\S*\s*(.*)$/i;

/**
 * Reads the Test Anything Protocol, versions 12 to 14. Reads only the top level, because the line after a
 * subtest repeats its outcome. If a report ends before its plan does, or bails out, a failed test is added
 * for that.
 */
export function readTap(text: string): TestReport {
  const tests: ReportedTest[] = [];
  let planned: number | undefined;
  let bailedOut: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const [, count] = plan.exec(line) ?? [];
    if (count !== undefined) planned = Number(count);
    if (line.startsWith('Bail out!')) bailedOut = line;
    const found = result.exec(line);
    if (found) tests.push(testOf(found, tests.length + 1));
    else if (/^\s/.test(line)) addDetail(tests.at(-1), line);
  }
  const failure = bailedOut ?? planProblem(planned, tests.length);
  if (failure !== undefined) tests.push({ name: 'plan', passed: false, message: failure });
  return { format: 'tap', tests };
}

function testOf([, not, number, described = '']: RegExpExecArray, position: number): ReportedTest {
  const [all, kind, why] = directive.exec(described) ?? [];
  const name = (all === undefined ? described : described.slice(0, -all.length)).trim();
  return {
    name: unescaped(name) || `test ${number ?? position}`,
    // Tests marked as skipped or todo are not expected to pass.
    passed: not === undefined || kind !== undefined,
    ...(kind !== undefined && { message: `${kind.toLowerCase()}: ${why}` }),
  };
}

function planProblem(planned: number | undefined, found: number): string | undefined {
  if (planned === undefined) return 'the report has no plan';
  return planned === found ? undefined : `${planned} tests were planned, ${found} are in the report`;
}

/**
 * Adds the YAML block below a result to the test, as text. The block's `message` becomes the test's message.
 */
function addDetail(test: ReportedTest | undefined, line: string): void {
  if (!test) return;
  const [, message] = /^\s+message:\s*['"]?(.*?)['"]?$/.exec(line) ?? [];
  if (message !== undefined) test.message ??= message;
  const [, milliseconds] = /^\s+duration_ms:\s*([\d.]+)$/.exec(line) ?? [];
  if (milliseconds !== undefined) test.durationMs ??= Math.round(Number(milliseconds));
  test.detail = test.detail === undefined ? line : `${test.detail}\n${line}`;
}

function unescaped(name: string): string {
  return name.replace(/\\([\\#])/g, '$1');
}
