import { availableParallelism } from 'node:os';
import { Semaphore } from '../src/base/semaphore.ts';
import { runQuietly } from './run-tool.ts';
import { endOf } from './titled.ts';

interface Check {
  title: string;
  command: string;
  args: readonly string[];
}

/** The longest first: most use one processor. */
const checks: readonly Check[] = [
  { title: 'Types (tsc)', command: 'tsc', args: ['--noEmit', '-p', '.'] },
  { title: 'Unused code and dependencies (knip)', command: 'knip', args: [] },
  { title: 'Types of the page (tsc)', command: 'tsc', args: ['--noEmit', '-p', 'src/viewer/page'] },
  { title: 'Format and lint (biome)', command: 'biome', args: ['check'] },
  { title: 'Types of the site (tsc)', command: 'tsc', args: ['--noEmit', '-p', 'site'] },
];

/**
 * Checks the code, with one check for each processor at a time, and prints the output of each when it ends.
 * Returns the exit code of one that failed, or 0.
 */
export async function runChecks(signal: AbortSignal): Promise<number> {
  console.log('\n== Checks of the code');
  const room = new Semaphore(availableParallelism());
  const exitCodes = await Promise.all(
    checks.map(async ({ title, command, args }) => {
      using _ = await room.acquire(signal);
      const began = performance.now();
      const { exitCode, output } = await runQuietly(command, args, signal);
      console.log(`${output}${endOf(title, exitCode, performance.now() - began)}`);
      return exitCode;
    }),
  );
  return exitCodes.find((exitCode) => exitCode !== 0) ?? 0;
}
