import { modelAnswers } from '../bounds/model.ts';
import type { RetryLimits } from '../client/options.ts';
import { waitBefore } from '../client/retry.ts';
import type { Clock } from '../clock.ts';
import { Semaphore } from '../semaphore.ts';

/**
 * How often, and after what waits (milliseconds), a model is asked again before its client hears of the
 * trouble.
 */
export const retryLimits: RetryLimits = {
  attempts: modelAnswers.count.tries,
  budget: Number.POSITIVE_INFINITY,
  firstWait: 500,
  longestWait: modelAnswers.time.retryWait,
  longestRetryAfter: modelAnswers.time.retryAfter,
};

/**
 * The way to one model, shared by all trials: so many requests at a time, and none at all while the model
 * asks for quiet. Trials thus back off together, and come back one by one.
 */
export interface Pacing {
  /** Waits for a permit. Rejects with the signal's reason when it aborts first. */
  acquire(signal: AbortSignal): Promise<Permit>;
}

export interface Permit {
  release(): void;
  /**
   * The model is overloaded or unreachable: no request goes out for a while, at least for the milliseconds
   * that it asked for.
   */
  backOff(asked: number | undefined): void;
  /** The model answered: the next back-off starts from the shortest wait. */
  answered(): void;
}

export function pacing(
  maxParallel: number | undefined,
  { clock, random }: { clock: Clock; random: () => number },
): Pacing {
  const permits = new Semaphore(maxParallel ?? Number.POSITIVE_INFINITY);
  let troubles = 0;
  let pausedAt = Number.NEGATIVE_INFINITY;
  let quietUntil = Number.NEGATIVE_INFINITY;

  return {
    async acquire(signal) {
      using held = new DisposableStack();
      held.use(await permits.acquire(signal));
      signal.throwIfAborted();
      // Another's trouble may have prolonged the quiet meanwhile.
      for (let left = quietUntil - clock.now(); left > 0; left = quietUntil - clock.now()) {
        await clock.sleep(Math.ceil(left + random() * retryLimits.firstWait), signal);
      }
      return permitSince(clock.now(), held.move());
    },
  };

  function permitSince(acquiredAt: number, held: Disposable): Permit {
    return {
      release: () => held[Symbol.dispose](),
      backOff(asked) {
        // Those that were in flight when the quiet began only tell the same trouble once more.
        if (acquiredAt > pausedAt) {
          troubles += 1;
          pausedAt = clock.now();
        }
        quietUntil = Math.max(quietUntil, clock.now() + waitBefore(troubles, asked, retryLimits, random));
      },
      answered() {
        if (acquiredAt > pausedAt) troubles = 0;
      },
    };
  }
}
