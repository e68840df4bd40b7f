import type { Logger } from 'pino';
import { foundRuns } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/run-parts.ts';
import { NotFound } from '../../client/refusal.ts';
import type { Clock } from '../../clock.ts';
import { limits } from '../../contract/definition.ts';
import { startDeadline } from '../../deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { mayHaveWork, queuedOrdinals, syncRun } from './found-run.ts';
import type { Metrics } from './metrics.ts';
import type { PollTarget, PollTargets } from './poll-targets.ts';

export interface PollParts {
  client: Client;
  clock: Clock;
  ledger: Ledger;
  /** The service's name in the ledger. */
  service: string;
  targets: PollTargets;
  metrics: Metrics;
  log: Logger;
  /** Called when the queue has new trials. */
  claimed(): void;
}

/**
 * Polls the next target if it is due. Resolves with the milliseconds until the next target is due; rejects
 * only if the signal aborts.
 */
export async function poll(parts: PollParts, signal: AbortSignal): Promise<number> {
  const { targets, metrics, log, clock } = parts;
  const next = targets.next();
  if (!next || next.inMs > 0) return next?.inMs ?? foundRuns.time.nowhere;
  const { target, known } = next;
  // Each page has a deadline, but there may be many pages.
  using look = startDeadline(clock, foundRuns.time.look, signal, tooSlow);
  try {
    const found =
      target.kind === 'suite'
        ? await lookAtSuite(target, parts, look.signal)
        : await lookAtCase(target, known, parts, look.signal);
    targets.polled(target, found > 0 ? 'something' : 'nothing');
  } catch (error) {
    signal.throwIfAborted();
    metrics.errors.inc({ of: 'service' });
    const message = messageOf(error);
    if (targets.failed(target, message))
      log.warn({ [target.kind]: target.id, reason: message }, 'cannot look for runs');
  }
  return targets.next()?.inMs ?? foundRuns.time.nowhere;
}

function tooSlow(): OffsiteError {
  return new OffsiteError(
    `the service did not list all runs within ${foundRuns.time.look / 60_000} minutes`,
    {
      code: 'LOOK_TOO_SLOW',
      kind: 'infrastructure',
    },
  );
}

/** Adds the cases of a suite as targets. Resolves with how many were not known before. */
async function lookAtSuite(
  target: PollTarget,
  { client, targets }: PollParts,
  signal: AbortSignal,
): Promise<number> {
  const { cases } = await client.call('evals.cases.list', { suite: target.id }, { signal });
  // A service that does not know this filter lists the cases of all suites.
  const own = cases.filter(({ suite }) => suite === undefined || suite.id === target.id);
  const before = targets.size;
  for (const { id } of own) targets.add({ kind: 'case', id, suite: target.id });
  return targets.size - before;
}

/**
 * Claims the new runs of a case. Resolves with how many it claimed. The first poll reads all pages. Later
 * polls stop after as many runs in a row without open trials as a page has, because runs with open trials are
 * the newest. A trial that another agent runs is open too: it may come back.
 */
async function lookAtCase(
  { id: caseId, suite }: PollTarget,
  known: boolean,
  parts: PollParts,
  signal: AbortSignal,
): Promise<number> {
  const { client, log } = parts;
  const setups = { parts: 'setup', of: (run: ListedRun) => queuedOrdinals(run).length > 0 } as const;
  let claimed = 0;
  let inARow = 0;
  let ofOneSuite: Promise<boolean> | undefined;
  try {
    for await (const record of client.runs({ caseId }, { signal, ...setups })) {
      const isOpen = queuedOrdinals(record).length > 0;
      if (isOpen && suite !== undefined && !record.suite) ofOneSuite ??= isOfOneSuite(caseId, parts, signal);
      const isWanted = suite === undefined || (record.suite ? record.suite.id === suite : await ofOneSuite);
      if (await syncRun(record, caseId, { ...parts, mayClaim: isWanted === true })) {
        claimed++;
        log.info({ batch: record.batchId, run: record.id, case: caseId }, 'claimed a run');
        parts.claimed();
      }
      inARow = mayHaveWork(record) ? 0 : inARow + 1;
      if (known && inARow >= limits.runsPerPage) break;
    }
  } catch (error) {
    // No batch has been started for this case yet.
    if (!(error instanceof NotFound)) throw error;
  }
  return claimed;
}

/**
 * Whether the service lists this case in one suite only, or says of no case which suite it is of. Then a record
 * that does not name its suite is taken for the suite that brought the case.
 */
async function isOfOneSuite(caseId: string, { client }: PollParts, signal: AbortSignal): Promise<boolean> {
  const { cases } = await client.call('evals.cases.list', {}, { signal });
  const suites = cases.flatMap(({ id, suite }) => (id === caseId && suite ? suite.id : []));
  return new Set(suites).size <= 1;
}
