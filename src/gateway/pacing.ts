import { modelAnswers } from '../bounds/model.ts';
import type { RetryLimits } from '../client/options.ts';
import { waitBefore } from '../client/retry.ts';
import type { Clock } from '../clock.ts';
import type { Semaphore } from '../semaphore.ts';

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
  backOff(asked: number | undefined): void;
  /** The model answered: the next back-off starts from the shortest wait. */
  answered(): void;
}

/** @param permits one for each request that may be in flight */
export function pacing(
  permits: Semaphore,
  { clock, random }: { clock: Clock; random: () => number },
): Pacing {
  let failures = 0;
  let pausedAt = Number.NEGATIVE_INFINITY;
  let backOffUntil = Number.NEGATIVE_INFINITY;

  return {
    async acquire(signal) {
      using held = new DisposableStack();
      held.use(await permits.acquire(signal));
      signal.throwIfAborted();
      // Another request's failure may have extended the back-off in the meantime.
      for (let left = backOffUntil - clock.now(); left > 0; left = backOffUntil - clock.now()) {
        await clock.sleep(Math.ceil(left + random() * retryLimits.firstWait), signal);
      }
      return permitSince(clock.now(), held.move());
    },
  };

  function permitSince(acquiredAt: number, held: Disposable): Permit {
    return {
      release: () => held[Symbol.dispose](),
      backOff(asked) {
        // Requests that were in flight when the back-off began only report the same failure again.
        if (acquiredAt > pausedAt) {
          failures += 1;
          pausedAt = clock.now();
        }
        backOffUntil = Math.max(backOffUntil, clock.now() + waitBefore(failures, asked, retryLimits, random));
      },
      answered() {
        if (acquiredAt > pausedAt) failures = 0;
      },
    };
  }
}
