import type { Logger } from 'pino';
import type { Clock } from '../../base/clock.ts';
import { isExpected, messageOf } from '../../base/offsite-error.ts';
import { foundRuns } from '../../bounds/service.ts';
import type { Watchdog } from '../loop.ts';
import { Loop } from '../loop.ts';
import type { Metrics } from './metrics.ts';

export interface LoopsParts {
  clock: Clock;
  watchdog: Watchdog;
  metrics: Metrics;
  log: Logger;
}

/** A watched loop. It counts its failures, and logs a failure that repeats only once. */
export function watchedLoop(
  name: string,
  step: (signal: AbortSignal) => Promise<number>,
  { clock, watchdog, metrics, log }: LoopsParts,
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
