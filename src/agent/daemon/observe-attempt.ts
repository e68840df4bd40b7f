import type { Logger } from 'pino';
import type { AttemptEvent } from '../finish-trial.ts';
import { type InHand, namesOf } from './in-hand.ts';
import type { Metrics } from './metrics.ts';

/** Logs and counts what happens to a trial. */
export function observeAttempt(
  { trial, begun }: InHand,
  event: AttemptEvent,
  { log, metrics }: { log: Logger; metrics: Metrics },
): void {
  const names = namesOf(trial);
  switch (event.kind) {
    case 'phase':
      if (begun) begun.phase = event.phase;
      return;
    case 'retried':
      metrics.retried.inc();
      log.warn(
        { ...names, attempt: event.attempt, reason: event.message },
        'an attempt failed and is made again',
      );
      return;
    case 'unstored':
      metrics.errors.inc({ of: 'disk' });
      log.error({ ...names, reason: event.message }, 'a result cannot be stored yet');
      return;
    case 'broken-harness':
      log.warn({ ...names, reason: event.told }, 'the harness of a variant does not work');
      return;
    case 'finished': {
      const { verdict, cause, startedAt, finishedAt } = event.result;
      metrics.finished(event.result);
      const why = cause && { cause: cause.kind, reason: cause.message };
      log.info({ ...names, verdict, ms: finishedAt - startedAt, ...why }, 'finished a trial');
    }
  }
}
