import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTool } from './run-tool.ts';
import {
  countTests,
  filesToRerun,
  mergeReports,
  skippedTests,
  type TestCount,
  type TestReport,
  unsteadyTests,
} from './test-count.ts';
import { timesText } from './test-times.ts';

export interface TestRun {
  exitCode: number;
  count: TestCount;
  /** Absent if vitest ended before it wrote one. */
  report: TestReport | undefined;
}

/**
 * Runs vitest. The few files that fail run once more, alone, after the rest. What passes then is reported as
 * unsteady: it is a defect of the test or of Offsite, but does not show that the present change is broken.
 */
export async function runTests(
  args: readonly string[],
  signal: AbortSignal,
  env: NodeJS.ProcessEnv = process.env,
): Promise<TestRun> {
  const first = await runVitest(args, signal, env);
  const skipped = skippedTests(first.report);
  if (skipped.length > 0) console.log(['\n== Skipped', ...skipped.map((line) => `  ${line}`)].join('\n'));
  const times = first.report === undefined ? [] : timesText(first.report, process.cwd());
  if (times.length > 0) console.log(['\n== Where the time went', ...times].join('\n'));
  const again = filesToRerun(first.report);
  if (first.exitCode === 0 || first.report === undefined || again.length === 0) return counted(first);
  console.log(`\n== Once more, alone: ${again.join(', ')}`);
  const second = await runVitest(['--no-file-parallelism', ...again], signal, env);
  if (second.report === undefined) return { ...counted(first), exitCode: second.exitCode || 1 };
  const merged = mergeReports(first.report, second.report);
  const unsteady = unsteadyTests(first.report, merged);
  if (unsteady.length > 0) {
    console.log('\n== Unsteady: failed beside other tests and passed alone. Please fix:');
    for (const line of unsteady) console.log(`  ${line}`);
  }
  return counted({ exitCode: second.exitCode, report: merged });
}

/** A run in which a test failed, or none ran, has failed, whatever vitest says. */
function counted({ exitCode, report }: Omit<TestRun, 'count'>): TestRun {
  const count = countTests(report, exitCode);
  return { exitCode: exitCode === 0 && count.failed > 0 ? 1 : exitCode, count, report };
}

async function runVitest(args: readonly string[], signal: AbortSignal, env: NodeJS.ProcessEnv) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-test-'));
  const path = join(folder.path, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];
  const exitCode = await runTool('vitest', ['run', ...reporters, ...args], signal, env);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined; // vitest ended before it wrote a report
    throw error;
  });
  return { exitCode, report: text === undefined ? undefined : (JSON.parse(text) as TestReport) };
}
