import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { isExpected, messageOf } from '../base/offsite-error.ts';
import { foundRuns } from '../bounds/service.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import type { BuildEvent } from '../trial/prepare/obtain-image.ts';
import type { Metrics } from './daemon/metrics.ts';
import { Delivery, type DeliveryParts } from './delivery.ts';
import { Loop, type Watchdog } from './loop.ts';
import type { Delivered } from './reconcile.ts';
import { Worker } from './worker/worker.ts';
import { usualAttempts, type WorkEvent, type WorkerParts } from './worker/worker-parts.ts';

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
  if (interrupted > 0) log.info({ trials: interrupted }, 'interrupted trials are queued again');
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
  observed?: ((report: StoredTrial) => void) | undefined;
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
  { key, batchId, runId, caseId, ordinal }: StoredTrial,
  { state, answer: reason }: Delivered,
  { log, metrics, verb = 'report', superseded }: WatchedDeliveryParts,
): void {
  const names = { batch: batchId, run: runId, case: caseId, trial: ordinal };
  metrics.reports.inc({ outcome: state });
  if (state === 'sent') return;
  if (state === 'delivered') log.info({ ...names, reason }, `${verb}ed a trial`);
  else if (state === 'superseded') {
    log.warn({ ...names, reason }, 'the service has another result of a trial; that one counts');
    superseded?.(key);
  } else log.warn({ ...names, state, reason }, `cannot ${verb} a trial`);
}

/** Logs and counts what the worker does. */
function observeWork(event: WorkEvent, { log, metrics }: { log: Logger; metrics: Metrics }): void {
  switch (event.kind) {
    case 'phase':
    case 'left':
      return;
    case 'build':
      logBuild(event.build, log);
      return;
    case 'waiting':
      log.warn(event, 'trials wait');
      return;
    case 'resumed':
      log.warn(event, 'trials continue');
      return;
    case 'begun':
      log.debug(namesOf(event.trial), 'started a trial');
      return;
    case 'not-ready': {
      const { trial, why, isNews } = event;
      const message = why.kind === 'parked' ? 'parked a run' : 'a run waits';
      if (isNews) log.warn({ ...namesOf(trial), reason: why.reason }, message);
      return;
    }
    case 'not-claimed': {
      const { trial, why, reason, hadBegun, isNews } = event;
      if (hadBegun) log.warn({ ...namesOf(trial), reason }, 'lost a running trial to another agent');
      else if (why !== 'unasked') log.debug({ ...namesOf(trial), reason }, 'another agent has a trial');
      else if (isNews) log.warn({ ...namesOf(trial), reason }, 'a run waits');
      return;
    }
    case 'put-back': {
      const { trial, error, isNews } = event;
      const expected = isExpected(error);
      metrics.errors.inc({ of: expected ? 'disk' : 'daemon' });
      const why = { reason: messageOf(error), err: expected ? undefined : error };
      if (isNews)
        log.error({ ...namesOf(trial), ...why }, 'could not finish a trial; no trial starts for now');
      return;
    }
    case 'retried': {
      const { trial, attempt, message: reason } = event;
      metrics.retried.inc();
      log.warn({ ...namesOf(trial), attempt, reason }, 'an attempt failed; the trial is retried');
      return;
    }
    case 'unstored':
      metrics.errors.inc({ of: 'disk' });
      log.error({ ...namesOf(event.trial), reason: event.message }, 'a result cannot be stored yet');
      return;
    case 'broken-harness':
      log.warn({ ...namesOf(event.trial), reason: event.message }, 'the harness of a variant does not work');
      return;
    case 'finished': {
      const { verdict, cause, startedAt, finishedAt } = event.result;
      metrics.finished(event.result);
      const why = cause && { cause: cause.kind, reason: cause.message };
      log.info({ ...namesOf(event.trial), verdict, ms: finishedAt - startedAt, ...why }, 'finished a trial');
    }
  }
}

function logBuild({ what, state }: BuildEvent, log: Logger): void {
  switch (state.kind) {
    case 'running':
      log.info({ what }, 'building an environment');
      return;
    case 'other-agent':
      log.info({ what }, 'another agent builds an environment; trials wait for it');
      return;
    case 'built':
      log.info({ what }, 'built an environment');
      return;
    case 'failed': {
      const { message: reason, output } = state.cause;
      log.error({ what, reason, output }, 'an environment cannot be built');
      return;
    }
    case 'queued':
    case 'stopped':
      return;
  }
}

/** The names of a trial in the log. */
function namesOf({ batchId, runId, caseId, ordinal }: StoredTrial) {
  return { batch: batchId, run: runId, case: caseId, trial: ordinal };
}
