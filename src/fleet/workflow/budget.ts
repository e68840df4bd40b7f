import type { Spending } from './messages.ts';

/**
 * How many trials may run at a time so that the budget suffices even if each uses all that it is allowed.
 * Without a limit for a trial, trials run until the budget is spent. Infinity without a budget.
 */
export function headroom(budget: Spending, trial: Spending, spent: { tokens: number; usd: number }): number {
  const rooms = (['tokens', 'usd'] as const).map((unit) => {
    const limit = budget[unit];
    if (limit === undefined) return Number.POSITIVE_INFINITY;
    const left = Math.max(0, limit - spent[unit]);
    const most = trial[unit];
    if (most === undefined) return left > 0 ? Number.POSITIVE_INFINITY : 0;
    return Math.floor(left / most);
  });
  return Math.min(...rooms);
}
