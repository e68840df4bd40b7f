import type { Logger } from 'pino';
import { foundRuns } from '../../bounds/service.ts';
import type { Clock } from '../../clock.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Watchdog } from '../loop.ts';
import { Loop } from '../loop.ts';
import type { Metrics } from './metrics.ts';

export interface LoopsParts {
  clock: Clock;
  watchdog: Watchdog;
  metrics: Metrics;
  log: Logger;
}

/** A watched loop whose failures are logged, each once however often it comes in a row, and counted. */
export function watchedLoop(
  name: string,
  step: (signal: AbortSignal) => Promise<number>,
  { clock, watchdog, metrics, log }: LoopsParts,
): Loop {
  let told: string | undefined;
  const failed = (error: unknown) => {
    const isExpected = error instanceof OffsiteError;
    metrics.errors.inc({ of: isExpected ? name : 'daemon' });
    const reason = messageOf(error);
    if (reason !== told)
      log.error({ reason, err: isExpected ? undefined : error }, `cannot go on with ${name}`);
    told = reason;
  };
  const round = async (signal: AbortSignal) => {
    const waitMs = await step(signal);
    told = undefined;
    return waitMs;
  };
  return new Loop({ name, clock, watchdog, stepMs: foundRuns.time.step, failed, step: round });
}
