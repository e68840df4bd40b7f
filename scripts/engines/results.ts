import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Capabilities } from '../../src/engine/port/engine-port.ts';
import type { TestReport } from '../test-count.ts';
import { checkOf } from './checks.ts';

/** What the tests found on one engine: a file of test/engines/results/. */
export interface EngineResult {
  /** As in `--engine NAME`; the file's name too. */
  name: string;
  /** `Docker with user namespaces`. */
  title: string;
  version: string;
  /** `overlay2`, `overlayfs`. */
  storage: string;
  cgroups: string;
  /** `runc`, `crun`. */
  runtime: string;
  /** Of each check that was run: tests that passed and failed, and the day, `2026-11-23`. */
  checks: Record<string, { passed: number; failed: number; on: string }>;
  /** What a reader should know, a sentence each: what failed and why, or why nothing was run. */
  notes: string[];
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'test/engines/results');

/** All that are kept, by name. */
export async function keptResults(): Promise<EngineResult[]> {
  await mkdir(folder, { recursive: true });
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8'))));
}

/**
 * Keeps what a run found. The counts of a check stay as they were if the run did not include all of its
 * files. The notes always stay.
 */
export async function keepResult(
  engine: { name: string; title: string },
  facts: Capabilities,
  report: TestReport,
  today: string,
): Promise<void> {
  const kept = (await keptResults()).find(({ name }) => name === engine.name);
  const result: EngineResult = {
    name: engine.name,
    title: engine.title,
    version: facts.serverVersion,
    storage: facts.storageDriver,
    cgroups: facts.cgroupVersion,
    runtime: facts.defaultRuntime,
    checks: { ...kept?.checks, ...(await countsOf(report, today)) },
    notes: kept?.notes ?? [],
  };
  await writeFile(join(folder, `${engine.name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}

async function countsOf(report: TestReport, on: string): Promise<EngineResult['checks']> {
  const ran = new Map(report.testResults.map((file) => [relative(root, file.name), file]));
  const counts: EngineResult['checks'] = {};
  const partial = new Set<string>();
  for (const path of await testFiles()) {
    const check = checkOf(path);
    if (check === undefined) continue;
    const file = ran.get(path);
    if (file === undefined) {
      partial.add(check);
      continue;
    }
    const count = counts[check] ?? { passed: 0, failed: 0, on };
    counts[check] = count;
    const failed = file.assertionResults.filter((test) => test.status === 'failed').length;
    count.passed += file.assertionResults.filter((test) => test.status === 'passed').length;
    // A file that does not load has no tests.
    count.failed += file.status === 'failed' ? Math.max(1, failed) : failed;
  }
  for (const check of partial) delete counts[check];
  return counts;
}

/** All test files, by their paths below the project's folder. */
async function testFiles(): Promise<string[]> {
  const names = await readdir(join(root, 'test'), { recursive: true });
  return names.filter((name) => name.endsWith('.test.ts')).map((name) => join('test', name));
}
