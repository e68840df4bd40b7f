import { modelAnswers } from '../bounds/model.ts';
import type { RetryLimits } from '../client/options.ts';

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
