import type { Clock } from '../base/clock.ts';
import type { Semaphore } from '../base/semaphore.ts';
import { modelAnswers } from '../bounds/model.ts';
import type { RetryLimits } from '../client/options.ts';
import { waitBefore } from '../client/retry.ts';
import type { StreamTimes } from './limits/limit-law.ts';
import type { ModelLimit } from './limits/model-limits.ts';

/**
 * How often, and after which waits (milliseconds), a request is retried before its client sees the failure.
 */
export const retryLimits: RetryLimits = {
  attempts: modelAnswers.count.tries,
  budget: Number.POSITIVE_INFINITY,
  firstWait: 500,
  longestWait: modelAnswers.time.retryWait,
  longestRetryAfter: modelAnswers.time.retryAfter,
};

/**
 * Limits the requests to one model, for all trials together: a maximum in flight, and none while the model is
 * backing off. So trials back off together, and resume one by one.
 */
export interface Pacing {
  /** Waits for a permit. Rejects with the signal's reason when it aborts first. */
  acquire(signal: AbortSignal): Promise<Permit>;
}

export interface Permit {
  release(): void;
  /**
   * The model is overloaded or unreachable: no request is sent for a while, at least for the milliseconds
   * that the model asked for.
   */
  backOff(asked: number | undefined, why: string): void;
  /**
   * The model refused the request because too many are in flight. `asked`: the milliseconds that the model
   * asked to wait. Returns how long this request waits before its next attempt, in addition to its wait for a
   * permit.
   */
  refused(asked: number | undefined, why: string): number;
  /**
   * Whether the limit may be too high if the model refuses this request: the limit adapts, and other requests
   * are in flight. Such a refusal does not count as an attempt.
   */
  readonly adapts: boolean;
  /** The model answered: the next back-off starts from the shortest wait. */
  answered(): void;
  /**
   * Reports to a limit that adapts that the answer is complete; undefined if the limit does not adapt.
   *
   * @param stream if the answer was streamed
   * @param firstByteAt epoch milliseconds
   */
  readonly completed:
    | ((stream: Pick<StreamTimes, 'requestBytes'> | undefined, firstByteAt: number) => void)
    | undefined;
}

export interface PacingParts {
  clock: Clock;
  random: () => number;
  /** A limit that adapts, in addition to the permits. */
  limit?: ModelLimit | undefined;
  /** Called when all requests begin a wait that is long enough to be reported. */
  waits?: ((ms: number, why: string) => void) | undefined;
}

/** Shorter waits are not reported. Milliseconds. */
const quietMs = 5_000;

/** @param permits one for each request that may be in flight */
export function pacing(permits: Semaphore, { clock, random, limit, waits }: PacingParts): Pacing {
  let failures = 0;
  let pausedAt = Number.NEGATIVE_INFINITY;
  let backOffUntil = Number.NEGATIVE_INFINITY;

  return {
    async acquire(signal) {
      using held = new DisposableStack();
      if (limit) held.use(await limit.acquire(signal));
      held.use(await permits.acquire(signal));
      signal.throwIfAborted();
      // Another request's failure may have extended the back-off in the meantime.
      for (let left = backOffUntil - clock.now(); left > 0; left = backOffUntil - clock.now()) {
        await clock.sleep(Math.ceil(left + random() * retryLimits.firstWait), signal);
      }
      if (limit) held.defer(() => limit.over());
      return permitSince(clock.now(), limit?.send() ?? 1, held.move());
    },
  };

  function pause(acquiredAt: number, asked: number | undefined, why: string): void {
    // Requests that were in flight when the back-off began only report the same failure again.
    const isNew = acquiredAt > pausedAt;
    if (isNew) {
      failures += 1;
      pausedAt = clock.now();
    }
    backOffUntil = Math.max(backOffUntil, clock.now() + waitBefore(failures, asked, retryLimits, random));
    const left = backOffUntil - clock.now();
    if (isNew && left >= quietMs) waits?.(left, why);
  }

  function permitSince(acquiredAt: number, inFlight: number, held: Disposable): Permit {
    const adapts = limit !== undefined && inFlight > 1;
    return {
      adapts,
      release: () => held[Symbol.dispose](),
      backOff: (asked, why) => pause(acquiredAt, asked, why),
      refused(asked, why) {
        limit?.observe({ kind: 'refused', sentAt: acquiredAt, inFlight, waitMs: asked ?? 0 });
        if (!adapts || asked !== undefined) {
          pause(acquiredAt, asked, why);
          return 0;
        }
        // The others continue, with a smaller limit.
        return waitBefore(1, undefined, retryLimits, random);
      },
      answered() {
        if (acquiredAt > pausedAt) failures = 0;
      },
      completed:
        limit &&
        ((stream, firstByteAt) => {
          const firstMs = firstByteAt - acquiredAt;
          const totalMs = clock.now() - acquiredAt;
          const times = stream && { ...stream, firstMs, totalMs };
          limit.observe({ kind: 'answered', sentAt: acquiredAt, inFlight, stream: times });
        }),
    };
  }
}
