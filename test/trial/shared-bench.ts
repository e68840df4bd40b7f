import { afterAll, beforeAll } from 'vitest';
import { openTrialBench, type TrialBench } from './trial-bench.ts';

/** The bench of the file that runs, in files that call {@link sharedBench}. */
export let bench: TrialBench;

/** Gives the tests of a file a bench that runs trials. Call it in the file. */
export function sharedBench(): void {
  beforeAll(async () => {
    bench = await openTrialBench();
  });
  afterAll(() => bench?.[Symbol.asyncDispose]());
}
