/**
 * What a program imports as `offsite`. Nothing here prints, listens to signals of the process or sets an exit
 * code. All that it needs is loaded by the first call.
 */

import type { Batch, PlaceOptions, RunSuiteOptions } from './types.ts';

export type * from './types.ts';

/**
 * Runs a suite as `offsite run` does: plans it, runs each trial in its own sandbox, and reports each result
 * to the configured service, or to the embedded one. Resolves when each trial has a result, whatever its
 * verdict.
 * Rejects with an error that has a `code`, and often a `hint`, if the suite is wrong or trials could not be
 * finished. Finished trials are stored then: {@link readBatch} reads them, and `offsite resume` continues.
 *
 * @example
 * const batch = await runSuite('suite.yaml', { trials: 3 });
 * console.log(batch.passRate);
 */
export async function runSuite(file: string, options: RunSuiteOptions = {}): Promise<Batch> {
  const { runSuite } = await import('./library.ts');
  return runSuite(file, options);
}

/**
 * Reads the results of a batch from the data folder, also while it runs.
 *
 * @param name the id of a batch or a set, or its beginning; `last` for the last batch
 * @throws an error with the code `BATCH_UNKNOWN` or `BATCH_AMBIGUOUS`
 */
export async function readBatch(name: string, options: PlaceOptions = {}): Promise<Batch> {
  const { readBatch } = await import('./library.ts');
  return readBatch(name, options);
}
