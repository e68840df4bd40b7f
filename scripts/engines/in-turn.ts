import { OffsiteError } from '../../src/base/offsite-error.ts';
import { summaryLine, type TestCount } from '../test-count.ts';
import { titled } from '../titled.ts';
import { runTests } from '../vitest.ts';
import { engineChecks } from './checks.ts';
import { keepResult } from './results.ts';
import { engineEntry, engineTable } from './table.ts';
import { openNamed } from './with-engine.ts';

/** What `npm test` was asked to do with other engines than the machine's own. */
export interface EngineRequest {
  names: readonly string[];
  /** Keep the counts for the table of docs/engines.md. */
  record: boolean;
  /** Arguments of vitest. Without any, all tests that need an engine run. */
  vitestArgs: readonly string[];
}

/**
 * Reads `--engine NAMES [--record] [FILES ...]`. `NAMES` is a name, several with commas, or `all`.
 *
 * @returns undefined without `--engine`
 * @throws OffsiteError an `input` error if there is no engine of that name
 */
export function engineRequest(args: readonly string[]): EngineRequest | undefined {
  const at = args.indexOf('--engine');
  if (at === -1) return undefined;
  const named = args[at + 1] ?? '';
  const names = named === 'all' ? engineTable.map(({ name }) => name) : named.split(',');
  for (const name of names) engineEntry(name);
  const rest = args.toSpliced(at, 2);
  return {
    names,
    record: rest.includes('--record'),
    vitestArgs: rest.filter((argument) => argument !== '--record'),
  };
}

/** Minutes. An engine that hangs must not keep others from their turn. */
const limitMinutes = 90;
const never = new AbortController().signal;

/**
 * Runs the tests on one engine after the other, also after one that failed, and prints how each ended. If
 * there are several engines, the tests on each are stopped after 90 minutes.
 *
 * @param onCount gets the count of all tests so far
 */
export async function testInTurn(
  request: EngineRequest,
  signal: AbortSignal,
  onCount: (count: TestCount) => void,
): Promise<number> {
  const total = { passed: 0, failed: 0 };
  const ended: string[] = [];
  let exitCode = 0;
  const isOne = request.names.length === 1;
  const limit = () => (isOne ? never : AbortSignal.timeout(limitMinutes * 60_000));
  for (const name of request.names) {
    const { count, ...run } = await testOn(name, request, signal, limit());
    exitCode ||= run.exitCode;
    total.passed += count.passed;
    total.failed += count.failed;
    onCount(total);
    ended.push(`  ${name}: ${summaryLine(count)}`);
  }
  if (ended.length > 1) console.log(['\n== Engines', ...ended].join('\n'));
  return exitCode;
}

/** If the time limit passes or the engine does not start, this counts as one failed test. */
async function testOn(
  name: string,
  { record, vitestArgs }: EngineRequest,
  signal: AbortSignal,
  limit: AbortSignal,
) {
  const until = AbortSignal.any([signal, limit]);
  let count: TestCount = { passed: 0, failed: 1 };
  const exitCode = await titled(`Tests on ${name} (vitest)`, async () => {
    try {
      await using named = await openNamed(name, process.env, until);
      const files = vitestArgs.length > 0 ? vitestArgs : engineChecks.flatMap(({ tests }) => tests);
      const run = await runTests(files, until, named.env);
      count = run.count;
      if (record && run.report !== undefined) {
        await keepResult(named.entry, named.facts, run.report, new Date().toISOString().slice(0, 10));
      }
      return run.exitCode;
    } catch (error) {
      if (signal.aborted) throw error;
      if (limit.aborted) {
        console.error(`Ended after ${limitMinutes} minutes.`);
        return 1;
      }
      if (!(error instanceof OffsiteError)) throw error;
      console.error([error.message, ...(error.hint === undefined ? [] : [error.hint])].join('\n'));
      return 3;
    }
  });
  return { exitCode, count };
}
