import type { Logger } from 'pino';
import { isExpected, messageOf } from '../../base/offsite-error.ts';
import type { QueuedTrial } from '../../ledger/queue.ts';
import type { BuildEvent } from '../../trial/image/build-event.ts';
import type { WorkEvent } from '../worker/worker-parts.ts';
import type { Metrics } from './metrics.ts';

/** Logs and counts what the worker does. */
export function observeWork(event: WorkEvent, { log, metrics }: { log: Logger; metrics: Metrics }): void {
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
function namesOf({ batchId, runId, caseId, ordinal }: QueuedTrial) {
  return { batch: batchId, run: runId, case: caseId, trial: ordinal };
}
