import { afterAll, beforeAll } from 'vitest';
import { type BenchParts, openTrialBench, type TrialBench } from './trial-bench.ts';

/** The bench of the file that runs, in files that call {@link sharedBench}. */
export let bench: TrialBench;

/** Gives the tests of a file a bench that runs trials. Call it in the file. */
export function sharedBench(given: BenchParts = {}): void {
  beforeAll(async () => {
    bench = await openTrialBench(given);
  });
  afterAll(() => bench?.[Symbol.asyncDispose]());
}
