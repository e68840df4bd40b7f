import type { Logger } from 'pino';
import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { foundRuns } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import { Unauthorized } from '../../client/refusal.ts';
import { limits } from '../../contract/definition.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { casesOf, isUnclear, lookAtCase, syncRun } from './found-run.ts';
import type { Metrics } from './metrics.ts';
import type { PollTarget, PollTargets } from './poll-targets.ts';
import { nothingListed } from './status.ts';

interface PollParts {
  client: Client;
  clock: Clock;
  ledger: Ledger;
  /** The service's name in the ledger. */
  service: string;
  targets: PollTargets;
  metrics: Metrics;
  log: Logger;
  /** The statuses of runs that were passed over because Offsite does not know them: each is told once. */
  unclear: Set<string>;
  /** Called when the queue has new trials. */
  adopted(): void;
  /** Called when the service could not be asked. */
  failed(): void;
  /** Called when the service lists a trial without the result that it had shown. */
  lost?(): void;
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
        : await adoptRuns(target, known, parts, look.signal);
    targets.polled(target, found > 0 ? 'something' : 'nothing');
  } catch (error) {
    signal.throwIfAborted();
    metrics.errors.inc({ of: 'service' });
    parts.failed();
    const message = error instanceof Unauthorized ? 'the service refuses the key' : messageOf(error);
    if (targets.failed(target, message))
      log.warn({ [target.kind]: target.id, reason: message }, 'cannot look for runs');
  }
  return targets.next()?.inMs ?? foundRuns.time.nowhere;
}

function tooSlow(): OffsiteError {
  const message = `the service did not list all runs within ${foundRuns.time.look / 60_000} minutes`;
  return infrastructureError('LOOK_TOO_SLOW', message);
}

/** Adds the cases of a suite as targets. Resolves with how many were not known before. */
async function lookAtSuite(
  target: PollTarget,
  { client, targets, log }: PollParts,
  signal: AbortSignal,
): Promise<number> {
  const before = targets.size;
  const cases = await casesOf(target.id, client, signal);
  if (targets.listed(target, cases.length) && cases.length === 0)
    log.warn({ suite: target.id }, nothingListed);
  for (const id of cases) targets.add({ kind: 'case', id, suite: target.id });
  return targets.size - before;
}

/** Adopts the new runs of a case, oldest first. Resolves with how many. */
async function adoptRuns(
  target: PollTarget,
  known: boolean,
  parts: PollParts,
  signal: AbortSignal,
): Promise<number> {
  const { client, log, unclear } = parts;
  const found: (() => boolean)[] = [];
  let adopted = 0;
  const adoptFound = () => {
    for (const adopt of found.splice(0).reverse()) if (adopt()) adopted++;
  };
  const take = async (record: ListedRun<'setup'>, mayAdopt: boolean, inARow: number) => {
    const { status = '', trials = [] } = record;
    const statuses = [...new Set([status, ...trials.map((trial) => trial.status)])].join(', ');
    if (isUnclear(record) && !unclear.has(statuses)) {
      unclear.add(statuses);
      const reason = 'passes over trials whose status Offsite does not know, or that the run does not list';
      log.warn({ run: record.id, case: target.id, status: statuses }, reason);
    }
    const adopt = await syncRun(record, target.id, { ...parts, mayAdopt });
    const { id: run, batchId: batch } = record;
    found.push(() => {
      if (!adopt()) return false;
      log.info({ batch, run, case: target.id }, 'took up a run');
      parts.adopted();
      return true;
    });
    // What has work is the newest: it does not wait until a long history is read.
    if (inARow >= limits.runsPerPage) adoptFound();
    return false;
  };
  try {
    await lookAtCase(target, known, { client, take }, signal);
  } finally {
    adoptFound();
  }
  return adopted;
}
