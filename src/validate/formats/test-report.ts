import { z } from 'zod';
import { DocumentTooHeavy, parseCheckedJson } from '../../base/parse-json.ts';
import type { ReportedTest, TestReport } from './junit.ts';

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

const result = /^(not )?ok\b\s*(\d+)?\s*(?:- )?(.*)$/;
const plan = /^1\.\.(\d+)/;
const directive = /(?:^|\s)#\s*(skip|todo)\S*\s*(.*)$/i;

/**
 * Reads the Test Anything Protocol, versions 12 to 14. Reads only the top level, because the line after a
 * subtest repeats its outcome. If a report ends before its plan does, or bails out, a failed test is added
 * for that.
 */
function readTap(text: string): TestReport {
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

/** The parts that we read of the Common Test Report Format (ctrf.io), version 0. */
const Ctrf = z.object({
  results: z.object({
    tests: z.array(
      z.object({
        name: z.string(),
        status: z.enum(['passed', 'failed', 'skipped', 'pending', 'other']),
        duration: z.number().optional(),
        message: z.string().optional(),
        trace: z.string().optional(),
        suite: z.union([z.string(), z.array(z.string())]).optional(),
      }),
    ),
  }),
});

/** Reads a CTRF report. Undefined for JSON that is not meant as one. */
function readCtrf(text: string): TestReport | undefined {
  let value: unknown;
  try {
    value = parseCheckedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    if (error instanceof DocumentTooHeavy) return { format: 'ctrf', problem: error.message };
    throw error;
  }
  const tests = (value as { results?: { tests?: unknown } }).results?.tests;
  if (!Array.isArray(tests)) return undefined;
  const read = Ctrf.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { format: 'ctrf', problem: `${issue?.path.join('.')}: ${issue?.message}` };
  }
  return {
    format: 'ctrf',
    tests: read.data.results.tests.map(({ name, status, duration, message, trace, suite }) => {
      const skipped = status === 'skipped' || status === 'pending';
      const shownMessage = message ?? (skipped ? status : undefined);
      return {
        name: [...(typeof suite === 'string' ? [suite] : (suite ?? [])), name].join(' > '),
        passed: status === 'passed' || skipped,
        ...(shownMessage !== undefined && { message: shownMessage }),
        ...(duration !== undefined && duration >= 0 && { durationMs: Math.round(duration) }),
        ...(trace !== undefined && { detail: trace }),
      };
    }),
  };
}
