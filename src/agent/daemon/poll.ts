import type { Logger } from 'pino';
import { foundRuns } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import { NotFound } from '../../client/refusal.ts';
import { limits } from '../../contract/definition.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { messageOf } from '../../offsite-error.ts';
import { queuedOrdinals, takeNotice } from './found-run.ts';
import type { Metrics } from './metrics.ts';
import type { Place, Places } from './places.ts';

export interface PollParts {
  client: Client;
  ledger: Ledger;
  /** The service's name in the ledger. */
  service: string;
  places: Places;
  metrics: Metrics;
  log: Logger;
  /** There is more to be run. */
  claimed(): void;
}

/**
 * Looks at one place that is due. Resolves with the milliseconds until the next is; rejects only where the
 * signal aborts.
 */
export async function poll(parts: PollParts, signal: AbortSignal): Promise<number> {
  const { places, metrics, log } = parts;
  const next = places.next();
  if (!next || next.inMs > 0) return next?.inMs ?? foundRuns.time.nowhere;
  const { place, known } = next;
  try {
    const found =
      place.kind === 'suite'
        ? await lookAtSuite(place, parts, signal)
        : await lookAtCase(place, known, parts, signal);
    places.looked(place, found > 0 ? 'something' : 'nothing');
  } catch (error) {
    signal.throwIfAborted();
    metrics.errors.inc({ of: 'service' });
    const message = messageOf(error);
    if (places.failed(place, message))
      log.warn({ [place.kind]: place.id, reason: message }, 'cannot look for runs');
  }
  return places.next()?.inMs ?? foundRuns.time.nowhere;
}

/** Cases that were not known before. */
async function lookAtSuite(
  place: Place,
  { client, places }: PollParts,
  signal: AbortSignal,
): Promise<number> {
  const { cases } = await client.call('evals.cases.list', { suite: place.id }, { signal });
  // A service that knows no such filter lists the cases of all suites.
  const own = cases.filter(({ suite }) => suite === undefined || suite.id === place.id);
  const before = places.size;
  for (const { id } of own) places.add({ kind: 'case', id });
  return places.size - before;
}

/**
 * Runs that were claimed. The first time all pages are read; then those that have open trials, which are the
 * newest.
 */
async function lookAtCase(
  { id: caseId }: Place,
  known: boolean,
  parts: PollParts,
  signal: AbortSignal,
): Promise<number> {
  const { client, log } = parts;
  let claimed = 0;
  let inARow = 0;
  try {
    for await (const record of client.runs({ caseId }, { signal })) {
      if (await takeNotice(record, caseId, parts)) {
        claimed++;
        log.info({ batch: record.batchId, run: record.id, case: caseId }, 'claimed a run');
        parts.claimed();
      }
      inARow = queuedOrdinals(record).length === 0 ? inARow + 1 : 0;
      if (known && inARow >= limits.runsPerPage) break;
    }
  } catch (error) {
    // A case that nothing was started for yet.
    if (!(error instanceof NotFound)) throw error;
  }
  return claimed;
}
