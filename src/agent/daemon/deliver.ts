import type { Logger } from 'pino';
import { foundRuns } from '../../bounds/service.ts';
import type { Clock } from '../../clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PendingReport } from '../../ledger/outbox.ts';
import type { Delivered, Delivery } from '../delivery.ts';
import { DeliveryLoop } from '../delivery-loop.ts';
import type { Metrics } from './metrics.ts';
import type { Watchdog } from './watchdog.ts';

export interface DeliverParts {
  ledger: Ledger;
  delivery: Delivery;
  /** The service's name in the ledger. */
  service: string;
  clock: Clock;
  watchdog: Watchdog;
  metrics: Metrics;
  log: Logger;
}

/** The loop that reports whatever is in the outbox, watched and logged. It begins at once. */
export function openDelivery(parts: DeliverParts): DeliveryLoop {
  const { clock, watchdog, log } = parts;
  const beat = watchdog.loop('deliver');
  beat(foundRuns.time.step);
  const watched: Clock = {
    now: () => clock.now(),
    sleep(ms, signal) {
      beat(ms + foundRuns.time.step);
      return clock.sleep(ms, signal);
    },
  };
  return new DeliveryLoop({
    ...parts,
    clock: watched,
    observe(report, delivered) {
      beat(foundRuns.time.step);
      observeDelivery(report, delivered, parts);
    },
    note: (message) => log.warn({ reason: message }, 'the outbox cannot be kept up to date'),
  });
}

function observeDelivery(
  { batchId, runId, caseId, ordinal }: PendingReport,
  delivered: Delivered,
  { log, metrics }: DeliverParts,
): void {
  const names = { batch: batchId, run: runId, case: caseId, trial: ordinal };
  if (delivered.kind === 'delivered') {
    metrics.reports.inc({ outcome: 'delivered' });
    log.info(names, 'reported a trial');
    return;
  }
  const { state, answer } = delivered;
  metrics.reports.inc({ outcome: state });
  log.warn({ ...names, state, reason: answer }, 'cannot report a trial');
}
