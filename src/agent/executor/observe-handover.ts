import type { Logger } from 'pino';
import type { PendingReport } from '../../ledger/outbox.ts';
import type { Delivered } from '../outbox-delivery.ts';

/** Logs whether the service recorded a result. */
export function observeHandover(
  { batchId, runId, caseId, ordinal }: PendingReport,
  delivered: Delivered,
  log: Logger,
): void {
  const names = { batch: batchId, run: runId, case: caseId, trial: ordinal };
  if (delivered.kind === 'delivered') {
    log.info(names, 'recorded a trial');
    return;
  }
  const { state, answer } = delivered;
  log.warn({ ...names, state, reason: answer }, 'cannot record a trial');
}
