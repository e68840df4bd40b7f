import type { RetryLimits } from './options.ts';

/** What one client may still repeat. One per client; every call draws on it. */
export interface RetryBudget {
  /** Takes one retry; false where none is left. */
  take(): boolean;
  /** A success gives one back. */
  restore(): void;
}

export function retryBudget(size: number): RetryBudget {
  let left = size;
  return {
    take() {
      if (left < 1) return false;
      left -= 1;
      return true;
    },
    restore() {
      left = Math.min(size, left + 1);
    },
  };
}

/**
 * Milliseconds to wait after failed attempt number `attempt` (from 1). Full jitter: anything between nothing
 * and a bound that doubles, so that clients which failed together do not come back together. What the service
 * asked for comes first.
 */
export function waitBefore(
  attempt: number,
  asked: number | undefined,
  limits: RetryLimits,
  random: () => number,
): number {
  const bound = Math.min(limits.longestWait, limits.firstWait * 2 ** (attempt - 1));
  return Math.round(Math.min(asked ?? 0, limits.longestRetryAfter) + random() * bound);
}
