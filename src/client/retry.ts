import { backoff } from '../backoff.ts';
import type { RetryLimits } from './options.ts';

/** How many retries one client has left. All calls of the client share it. */
export interface RetryBudget {
  /** Takes one retry; false if none is left. */
  take(): boolean;
  /** Returns one retry after a success. */
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
 * Milliseconds to wait after failed attempt number `attempt` (from 1): the time that the service asked for,
 * plus a {@link backoff}.
 */
export function waitBefore(
  attempt: number,
  asked: number | undefined,
  limits: RetryLimits,
  random: () => number,
): number {
  const { firstWait: first, longestWait: longest, longestRetryAfter } = limits;
  return Math.round(Math.min(asked ?? 0, longestRetryAfter)) + backoff(attempt, { first, longest }, random);
}
