import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import { NotFound } from '../../client/refusal.ts';
import { limits } from '../../contract/definition.ts';
import { mayHaveWork, queuedOrdinals } from './found-run.ts';
import type { PollTarget } from './poll-targets.ts';

/** The ids of the cases that the service lists for a suite. */
export async function casesOf(suite: string, client: Client, signal: AbortSignal): Promise<string[]> {
  const { cases } = await client.call('evals.cases.list', { suite }, { signal });
  // A service that does not know this filter lists the cases of all suites.
  return cases.filter((one) => one.suite === undefined || one.suite.id === suite).map(({ id }) => id);
}

export interface CaseLook {
  client: Client;
  /**
   * Receives each run, newest first. Runs of other suites than the target's are not wanted. Resolves with
   * whether the run brought work.
   */
  take(record: ListedRun<'setup'>, isWanted: boolean): Promise<boolean>;
}

/**
 * Looks for runs of a case with trials to run. Resolves with how many brought work. With `known`, it stops
 * after as many runs in a row without open trials as a page has, because runs with open trials are the
 * newest. A trial that another agent runs is open too: it may come back.
 */
export async function lookAtCase(
  { id: caseId, suite }: PollTarget,
  known: boolean,
  { client, take }: CaseLook,
  signal: AbortSignal,
): Promise<number> {
  const setups = { parts: 'setup', of: (run: ListedRun) => queuedOrdinals(run).length > 0 } as const;
  let brought = 0;
  let inARow = 0;
  let ofOneSuite: Promise<boolean> | undefined;
  try {
    for await (const record of client.runs({ caseId }, { signal, ...setups })) {
      const isOpen = queuedOrdinals(record).length > 0;
      if (isOpen && suite !== undefined && !record.suite) ofOneSuite ??= isOfOneSuite(caseId, client, signal);
      const isWanted = suite === undefined || (record.suite ? record.suite.id === suite : await ofOneSuite);
      if (await take(record, isWanted === true)) brought++;
      inARow = mayHaveWork(record) ? 0 : inARow + 1;
      if (known && inARow >= limits.runsPerPage) break;
    }
  } catch (error) {
    // No batch has been started for this case yet.
    if (!(error instanceof NotFound)) throw error;
  }
  return brought;
}

/**
 * Whether the service lists this case in at most one suite. Then a run record that names no suite counts as
 * one of the suite through which the case was found.
 */
async function isOfOneSuite(caseId: string, client: Client, signal: AbortSignal): Promise<boolean> {
  const { cases } = await client.call('evals.cases.list', {}, { signal });
  const suites = cases.flatMap(({ id, suite }) => (id === caseId && suite ? suite.id : []));
  return new Set(suites).size <= 1;
}
