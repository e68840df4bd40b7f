import { foundRuns } from '../bounds/service.ts';
import type { Ledger } from '../ledger/ledger.ts';

/**
 * Whether a batch that the ledger does not know may be one that a process of this data folder is starting
 * now: the service has the batch, but its id is not in the ledger yet. Ask again later.
 *
 * @param startedAt when the service started the batch, in epoch milliseconds, if that is known
 */
export function mayBeBeingStarted(
  ledger: Ledger,
  service: string,
  startedAt = Number.POSITIVE_INFINITY,
): boolean {
  return ledger.starts.open().some((start) => {
    if (start.service !== service || startedAt < start.askedAt - foundRuns.time.clockDifference) return false;
    // If the lock is free, the process is dead and nobody owns the batch.
    const lock = ledger.takeLock(start.lock);
    lock?.[Symbol.dispose]();
    return lock === undefined;
  });
}
