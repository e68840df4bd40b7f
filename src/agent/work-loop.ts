import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { isExpected, messageOf } from '../base/offsite-error.ts';
import { foundRuns } from '../bounds/service.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import type { Metrics } from './daemon/metrics.ts';
import { observeWork } from './daemon/observe-work.ts';
import { Delivery, type DeliveryParts } from './delivery.ts';
import { Loop, type Watchdog } from './loop.ts';
import type { Delivered } from './reconcile.ts';
import { Worker } from './worker/worker.ts';
import { usualAttempts, type WorkerParts } from './worker/worker-parts.ts';

/**
 * What every process shares that works until it is stopped: the daemon, the executor of the service, a worker
 * of the fleet. A worker runs the ledger's queue, and a loop delivers the results; both are logged, counted
 * and watched. These processes differ in their source, which fills the queue: loops of their own, or
 * Temporal.
 */

/** Where what happens is logged, counted and watched. */
export interface Watching {
  clock: Clock;
  watchdog: Watchdog;
  metrics: Metrics;
  log: Logger;
}

export type WorkParts = Omit<WorkerParts, 'attempts' | 'patienceMs' | 'checks' | 'onFailure' | 'changed'> &
  Watching;

/** The worker, and the loop that fills it from the queue. A source wakes the loop. */
export function openWork(parts: WorkParts): { worker: Worker; work: Loop } {
  const worker = new Worker({
    ...parts,
    attempts: usualAttempts,
    // It waits as long as it takes; its status shows what for.
    patienceMs: Number.POSITIVE_INFINITY,
    checks: true,
    onFailure: 'pause',
    observe(event) {
      observeWork(event, parts);
      parts.observe(event);
    },
    changed: () => work.wake(),
  });
  const work = watchedLoop('work', (signal) => worker.fill(signal), parts);
  return { worker, work };
}

/** Queues what a killed process has left running, and takes the reserve of disk space. */
export function beginWork({ ledger, scope, log }: Pick<WorkParts, 'ledger' | 'scope' | 'log'>): void {
  const interrupted = ledger.queue.interrupt(scope);
  if (interrupted > 0) log.info({ trials: interrupted }, 'interrupted trials start again');
  ledger.reserve.take();
}

/** A watched loop. It counts its failures, and logs a failure that repeats only once. */
export function watchedLoop(
  name: string,
  step: (signal: AbortSignal) => Promise<number>,
  { clock, watchdog, metrics, log }: Watching,
): Loop {
  let logged: string | undefined;
  const failed = (error: unknown) => {
    const expected = isExpected(error);
    metrics.errors.inc({ of: expected ? name : 'daemon' });
    const reason = messageOf(error);
    if (reason !== logged)
      log.error({ reason, err: expected ? undefined : error }, `the loop ${name} failed; it tries again`);
    logged = reason;
  };
  const round = async (signal: AbortSignal) => {
    const waitMs = await step(signal);
    logged = undefined;
    return waitMs;
  };
  return new Loop({ name, clock, watchdog, stepMs: foundRuns.time.step, failed, step: round });
}

export interface WatchedDeliveryParts extends Omit<DeliveryParts, 'observe' | 'note'> {
  metrics: Metrics;
  log: Logger;
  /** What is done with a result, for the log: it is reported to a service, or recorded by this process. */
  verb?: 'report' | 'record';
  /** Receives the report of each result that was delivered, or waits, besides the log. */
  observed?: ((report: PendingReport) => void) | undefined;
  /** Receives each trial whose report does not count, because another agent's does. */
  superseded?: ((trial: TrialKey) => void) | undefined;
}

/** Starts a loop that delivers the outbox, watched and logged. */
export function openDelivery(parts: WatchedDeliveryParts): Delivery {
  return new Delivery({
    ...parts,
    observe(report, delivered) {
      observeDelivery(report, delivered, parts);
      parts.observed?.(report);
    },
    note: (message) => parts.log.warn({ reason: message }, 'the outbox has trouble'),
  });
}

function observeDelivery(
  { trial, batchId, runId, caseId, ordinal }: PendingReport,
  { state, answer: reason }: Delivered,
  { log, metrics, verb = 'report', superseded }: WatchedDeliveryParts,
): void {
  const names = { batch: batchId, run: runId, case: caseId, trial: ordinal };
  metrics.reports.inc({ outcome: state });
  if (state === 'sent') return;
  if (state === 'delivered') log.info({ ...names, reason }, `${verb}ed a trial`);
  else if (state === 'superseded') {
    log.warn({ ...names, reason }, 'the service has another result of a trial; that one counts');
    superseded?.(trial);
  } else log.warn({ ...names, state, reason }, `cannot ${verb} a trial`);
}
