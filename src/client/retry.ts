import type { IncomingHttpHeaders } from 'node:http';
import { backoff } from '../base/clock.ts';
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

/**
 * How long an answer asks to wait, in milliseconds; undefined if it does not say, or not in a readable form.
 * `Retry-After` is seconds or a date. A date is compared with the answer's own `Date`, so that the clocks may
 * differ.
 */
export function retryAfter(headers: IncomingHttpHeaders, now: number): number | undefined {
  const value = headers['retry-after']?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const until = Date.parse(value);
  if (Number.isNaN(until)) return undefined;
  const serviceNow = Date.parse(headers.date ?? '');
  return Math.max(0, until - (Number.isNaN(serviceNow) ? now : serviceNow));
}
