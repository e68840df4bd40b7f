import { waitBefore } from '../client/retry.ts';
import type { Clock } from '../clock.ts';
import { retryLimits } from './retry-limits.ts';

/**
 * The way to one model, shared by all trials: so many requests at a time, and none at all while the model
 * asks for quiet. Trials thus back off together, and come back one by one.
 */
export interface Pacing {
  /** Waits for a place. Rejects with the signal's reason when it aborts first. */
  enter(signal: AbortSignal): Promise<Place>;
}

export interface Place {
  leave(): void;
  /**
   * The model is overloaded or not there: nobody asks for a while, at least for the milliseconds that it
   * asked for.
   */
  backOff(asked: number | undefined): void;
  /** The model answered: the next trouble starts from the shortest wait. */
  answered(): void;
}

export function pacing(
  maxParallel: number | undefined,
  { clock, random }: { clock: Clock; random: () => number },
): Pacing {
  const waiting = new Set<() => void>();
  let free = maxParallel ?? Number.POSITIVE_INFINITY;
  let troubles = 0;
  let pausedAt = Number.NEGATIVE_INFINITY;
  let quietUntil = Number.NEGATIVE_INFINITY;

  /** A place goes from hand to hand, so that nobody overtakes those who wait. */
  const release = () => {
    const [next] = waiting;
    if (!next) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  };
  const take = async (signal: AbortSignal) => {
    signal.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      if (waiting.delete(resolve)) reject(signal.reason);
    };
    waiting.add(resolve);
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
  };

  return {
    async enter(signal) {
      await take(signal);
      try {
        signal.throwIfAborted();
        // Another's trouble may have prolonged the quiet meanwhile.
        for (let left = quietUntil - clock.now(); left > 0; left = quietUntil - clock.now()) {
          await clock.sleep(Math.ceil(left + random() * retryLimits.firstWait), signal);
        }
      } catch (error) {
        release();
        throw error;
      }
      return placeSince(clock.now());
    },
  };

  function placeSince(enteredAt: number): Place {
    let left = false;
    return {
      leave() {
        if (left) return;
        left = true;
        release();
      },
      backOff(asked) {
        // Those that were under way when the quiet began only tell the same trouble once more.
        if (enteredAt > pausedAt) {
          troubles += 1;
          pausedAt = clock.now();
        }
        quietUntil = Math.max(quietUntil, clock.now() + waitBefore(troubles, asked, retryLimits, random));
      },
      answered() {
        if (enteredAt > pausedAt) troubles = 0;
      },
    };
  }
}
