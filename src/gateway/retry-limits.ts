import type { RetryLimits } from '../client/options.ts';

/** How often, and after what waits (milliseconds), a model is asked again before its client hears of the trouble. */
export const retryLimits: RetryLimits = {
  attempts: 5,
  budget: Number.POSITIVE_INFINITY,
  firstWait: 500,
  longestWait: 20_000,
  // Of one that asks for longer, its client is told at once.
  longestRetryAfter: 120_000,
};
