import type { Ledger } from '../ledger/ledger.ts';
import type { Delivery } from './delivery.ts';

/**
 * Delivers what could not be reported to this service before. Says how many went out. Rejects only where the signal aborts.
 *
 * @param due only reports whose next try is due by then (epoch milliseconds); others failed a moment ago
 */
export async function deliverLeftovers(
  { ledger, delivery, service }: { ledger: Ledger; delivery: Delivery; service: string },
  signal: AbortSignal,
  note: (message: string) => void,
  due = Number.POSITIVE_INFINITY,
): Promise<number> {
  const queued = ledger.outbox
    .pending()
    .filter((report) => report.service === service && report.state === 'queued' && report.nextAt <= due);
  let delivered = 0;
  for (const report of queued) {
    const outcome = await delivery.deliver(report, signal);
    if (outcome.kind === 'delivered') delivered++;
    // The service does not answer: the rest would only wait as long for the same.
    else if (outcome.state === 'queued') break;
  }
  if (delivered > 0) note(`reported ${delivered} of ${queued.length} results that were waiting`);
  return delivered;
}
