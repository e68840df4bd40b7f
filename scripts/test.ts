// Sets up the machine, then runs all checks. The first check that fails ends it. Arguments go to vitest.
//
// `--engine NAME` runs the tests that need an engine against another one, and the checks of the code not at
// all: `npm test -- --engine docker-28 [--record] [FILES ...]`. `node scripts/engine.ts` lists the names.
// `--record` keeps the counts for the table of docs/engines.md.

import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { engineChecks } from './engines/checks.ts';
import { keepResult } from './engines/results.ts';
import { openNamed } from './engines/with-engine.ts';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';
import { ensureBrowser } from './set-up/ensure-browser.ts';
import { ensureKubernetesValidate } from './set-up/kubernetes-validate.ts';
import { setUp } from './set-up/set-up.ts';
import { objectStore, temporal } from './set-up/test-servers.ts';
import { ensureProgram } from './set-up/wheel-program.ts';
import {
  countTests,
  filesToRerun,
  mergeReports,
  summaryLine,
  type TestCount,
  type TestReport,
  unsteadyTests,
} from './test-count.ts';
import { timesText } from './test-times.ts';

const checks = [
  { title: 'Format and lint (biome)', command: 'biome', args: ['check'] },
  { title: 'Types (tsc)', command: 'tsc', args: ['--noEmit', '-p', '.'] },
  { title: 'Types of the page (tsc)', command: 'tsc', args: ['--noEmit', '-p', 'src/viewer/page'] },
  { title: 'Types of the site (tsc)', command: 'tsc', args: ['--noEmit', '-p', 'site'] },
  { title: 'Unused code and dependencies (knip)', command: 'knip', args: [] },
];

let lastReport: TestReport | undefined;
let count: TestCount = { passed: 0, failed: 1 }; // until vitest has reported its count
const { engineName, record, vitestArgs } = engineOf(process.argv.slice(2));

await runScript(
  (signal) => (engineName === undefined ? runAll(signal) : runOnEngine(engineName, signal)),
  () => summaryLine(count),
);

/** Takes `--engine NAME` and `--record` from the arguments. */
function engineOf(args: string[]) {
  const at = args.indexOf('--engine');
  if (at === -1) return { engineName: undefined, record: false, vitestArgs: args };
  const rest = args.toSpliced(at, 2);
  return {
    engineName: args[at + 1] ?? '',
    record: rest.includes('--record'),
    vitestArgs: rest.filter((argument) => argument !== '--record'),
  };
}

async function runAll(signal: AbortSignal): Promise<number> {
  await titled('Set-up', async () => {
    await setUp(process.env, signal);
    await ensureBrowser(process.env, signal);
    await ensureProgram(temporal, process.env, signal);
    await ensureProgram(objectStore, process.env, signal);
    await ensureKubernetesValidate(process.env, signal);
    return 0;
  });
  for (const { title, command, args } of checks) {
    const exitCode = await titled(title, () => runTool(command, args, signal));
    if (exitCode !== 0) return exitCode;
  }
  return titled('Tests (vitest)', () => runTests(vitestArgs, signal));
}

/** Starts the engine, and runs the tests that need one with it. */
async function runOnEngine(name: string, signal: AbortSignal): Promise<number> {
  await using named = await openNamed(name, process.env, signal);
  Object.assign(process.env, named.env); // for vitest
  delete process.env.DOCKER_CONTEXT;
  const files = vitestArgs.length > 0 ? vitestArgs : engineChecks.flatMap(({ tests }) => tests);
  // Awaited here: the engine is ended as soon as this function returns.
  return await titled(`Tests on ${name} (vitest)`, async () => {
    const exitCode = await runTests([...files], signal);
    if (record && lastReport !== undefined)
      await keepResult(named.entry, named.facts, lastReport, new Date().toISOString().slice(0, 10));
    return exitCode;
  });
}

/**
 * Runs vitest. The few files that fail run once more, alone, after the rest. What passes then is told as
 * unsteady: it is a defect of the test or of Offsite, but none that says that this change is broken.
 */
async function runTests(args: string[], signal: AbortSignal): Promise<number> {
  const first = await runVitest(args, signal);
  lastReport = first.report;
  const times = first.report === undefined ? [] : timesText(first.report, process.cwd());
  if (times.length > 0) console.log(['\n== Where the time went', ...times].join('\n'));
  count = countTests(first.report, first.exitCode);
  const again = filesToRerun(first.report);
  if (first.exitCode === 0 || first.report === undefined || again.length === 0) {
    return first.exitCode === 0 && count.failed > 0 ? 1 : first.exitCode;
  }
  console.log(`\n== Once more, alone: ${again.join(', ')}`);
  const second = await runVitest(['--no-file-parallelism', ...again], signal);
  if (second.report === undefined) return second.exitCode || 1;
  const merged = mergeReports(first.report, second.report);
  lastReport = merged;
  count = countTests(merged, second.exitCode);
  const unsteady = unsteadyTests(first.report, merged);
  if (unsteady.length > 0) {
    console.log('\n== Unsteady: failed beside other tests and passed alone. Please mend:');
    for (const line of unsteady) console.log(`  ${line}`);
  }
  return second.exitCode === 0 && count.failed > 0 ? 1 : second.exitCode;
}

async function runVitest(args: string[], signal: AbortSignal) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-test-'));
  const path = join(folder.path, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];
  const exitCode = await runTool('vitest', ['run', ...reporters, ...args], signal);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined; // vitest ended before it wrote a report
    throw error;
  });
  return { exitCode, report: text === undefined ? undefined : (JSON.parse(text) as TestReport) };
}

async function titled(title: string, work: () => Promise<number>): Promise<number> {
  console.log(`\n== ${title}`);
  const began = performance.now();
  const exitCode = await work();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`== ${title}: ${exitCode === 0 ? 'ok' : `failed with exit code ${exitCode}`}, ${seconds} s`);
  return exitCode;
}
