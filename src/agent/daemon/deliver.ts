import type { Logger } from 'pino';
import type { Clock } from '../../base/clock.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PendingReport } from '../../ledger/outbox.ts';
import { DeliveryLoop } from '../delivery-loop.ts';
import type { Watchdog } from '../loop.ts';
import type { Delivered, OutboxDelivery } from '../outbox-delivery.ts';
import type { Metrics } from './metrics.ts';

export interface DeliverParts {
  ledger: Ledger;
  delivery: OutboxDelivery;
  /** The service's name in the ledger. */
  service: string;
  clock: Clock;
  watchdog: Watchdog;
  metrics: Metrics;
  log: Logger;
  check?: ((signal: AbortSignal) => Promise<void>) | undefined;
  /** Receives each trial whose report does not count, because another agent's does. */
  superseded?: ((trial: TrialKey) => void) | undefined;
}

/** Starts a loop that delivers the outbox, watched and logged. */
export function openDelivery(parts: DeliverParts): DeliveryLoop {
  return new DeliveryLoop({
    ...parts,
    observe: (report, delivered) => observeDelivery(report, delivered, parts),
    note: (message) => parts.log.warn({ reason: message }, 'the outbox has trouble'),
  });
}

function observeDelivery(
  { trial, batchId, runId, caseId, ordinal }: PendingReport,
  delivered: Delivered,
  { log, metrics, superseded }: DeliverParts,
): void {
  const names = { batch: batchId, run: runId, case: caseId, trial: ordinal };
  if (delivered.kind === 'delivered') {
    metrics.reports.inc({ outcome: 'delivered' });
    log.info({ ...names, reason: delivered.note }, 'reported a trial');
    return;
  }
  if (delivered.kind === 'superseded') {
    metrics.reports.inc({ outcome: 'superseded' });
    log.warn(
      { ...names, reason: delivered.answer },
      'the service has another result of a trial; that one counts',
    );
    superseded?.(trial);
    return;
  }
  const { state, answer } = delivered;
  metrics.reports.inc({ outcome: state });
  log.warn({ ...names, state, reason: answer }, 'cannot report a trial');
}
