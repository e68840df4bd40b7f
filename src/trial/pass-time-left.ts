import type { Clock } from '../clock.ts';
import type { BudgetLeft } from '../gateway/gateway.ts';
import type { TimeLeft } from '../harness/runner.ts';

interface TimeLeftParts {
  clock: Clock;
  /** The environment of the harness's processes. */
  env: Record<string, string>;
  /** What is left of the budgets of its models. */
  budgetLeft(): BudgetLeft;
}

/**
 * Passes a harness what is left of its time and of the budgets of its models, at the beginning of each turn:
 * in its environment, and by the function that this returns. A batch's budget is shared: what is left of it
 * may be used by other trials.
 *
 * @param until when the harness is ended, epoch milliseconds
 */
export function passTimeLeft(until: number, { clock, env, budgetLeft }: TimeLeftParts): () => TimeLeft {
  const left = () => timeLeft(until, budgetLeft(), clock.now());
  Object.assign(env, deadlineEnvironment(left(), clock.now()));
  return left;
}

function timeLeft(
  until: number,
  { until: budgetUntil = until, ...budgets }: BudgetLeft,
  now: number,
): TimeLeft {
  return { timeMs: Math.max(0, Math.min(until, budgetUntil) - now), ...budgets };
}

/** The variables that tell a harness what is left. What is not limited has no variable. */
function deadlineEnvironment(
  { timeMs, tokens, usd, requests }: TimeLeft,
  now: number,
): Record<string, string> {
  return {
    OFFSITE_DEADLINE: String(Math.floor((now + timeMs) / 1000)),
    OFFSITE_TIME_LIMIT_SECONDS: String(Math.floor(timeMs / 1000)),
    ...(tokens !== undefined && { OFFSITE_TOKEN_BUDGET: String(Math.floor(tokens)) }),
    ...(usd !== undefined && { OFFSITE_USD_BUDGET: usd.toFixed(4) }),
    ...(requests !== undefined && { OFFSITE_REQUEST_BUDGET: String(requests) }),
  };
}
