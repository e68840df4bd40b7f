import type { Clock } from '../clock.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { Budget } from '../suite/model-config.ts';
import type { BudgetAccount } from './gateway.ts';
import { Refusal } from './refusal.ts';

/** An account of which nothing is spent yet. Its time begins at `startedAt`, epoch milliseconds. */
export function openBudget(limit: Budget, startedAt: number): BudgetAccount {
  return { limit, spent: { tokens: 0, usd: 0, requests: 0, startedAt } };
}

/** The budgets that hold for one session: its own, and its batch's. */
export interface Budgets extends Disposable {
  /** Counts one request more. Throws a {@link Refusal}, and aborts `spent`, where a budget has nothing left. */
  begin(): void;
  /** As `begin`, for a request that is counted already. */
  check(): void;
  spend(used: { tokens: number; usd: number }): void;
  readonly spent: AbortSignal;
}

interface Held {
  whose: 'trial' | 'batch';
  account: BudgetAccount;
}

export function holdBudgets(trial: BudgetAccount, batch: BudgetAccount | undefined, clock: Clock): Budgets {
  const held: Held[] = [{ whose: 'trial', account: trial }];
  if (batch) held.push({ whose: 'batch', account: batch });
  const spent = new AbortController();
  const timer = new AbortController();

  const end = (message: string) => {
    if (!spent.signal.aborted) spent.abort(budgetSpent(message));
  };
  const refuseIf = (message: string | undefined) => {
    if (message === undefined) return;
    end(message);
    throw new Refusal(400, 'BUDGET_EXCEEDED', message);
  };
  for (const { whose, account } of held) {
    const { time } = account.limit;
    if (time === undefined) continue;
    passed(clock, account.spent.startedAt + time, timer.signal).then(
      () => end(timeMessage(whose, time)),
      (error) => {
        // Stopping the timer rejects too; only a clock that fails on its own is news.
        if (!timer.signal.aborted) spent.abort(error);
      },
    );
  }
  return {
    begin() {
      for (const { whose, account } of held) {
        const { requests } = account.limit;
        const { requests: used } = account.spent;
        const over = requests !== undefined && used >= requests;
        refuseIf(
          over
            ? `the ${whose}'s budget of ${requests} requests is spent`
            : overMessage(whose, account, clock),
        );
      }
      for (const { account } of held) account.spent.requests += 1;
    },
    check() {
      for (const { whose, account } of held) refuseIf(overMessage(whose, account, clock));
    },
    spend({ tokens, usd }) {
      for (const { account } of held) {
        account.spent.tokens += tokens;
        account.spent.usd += usd;
      }
    },
    spent: spent.signal,
    [Symbol.dispose]: () => timer.abort(),
  };
}

/** Resolves when it is `at`, epoch milliseconds. A timer of Node's that is longer than this ends at once. */
async function passed(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  const longest = 2 ** 31 - 1;
  for (let left = at - clock.now(); left > 0; left = at - clock.now()) {
    await clock.sleep(Math.min(left, longest), signal);
  }
}

function overMessage(whose: string, { limit, spent }: BudgetAccount, clock: Clock): string | undefined {
  if (limit.tokens !== undefined && spent.tokens >= limit.tokens) {
    return `the ${whose}'s budget of ${limit.tokens} tokens is spent: ${spent.tokens} were used`;
  }
  if (limit.usd !== undefined && spent.usd >= limit.usd) {
    return `the ${whose}'s budget of ${limit.usd} USD is spent: ${spent.usd.toFixed(4)} were used`;
  }
  if (limit.time !== undefined && clock.now() - spent.startedAt >= limit.time)
    return timeMessage(whose, limit.time);
  return undefined;
}

function timeMessage(whose: string, time: number): string {
  return `the ${whose}'s budget of ${time / 1000} s is spent`;
}

function budgetSpent(message: string): OffsiteError {
  return new OffsiteError(message, {
    code: 'BUDGET_SPENT',
    kind: 'input',
    hint: 'Budgets of trials and batches are set under budgets in offsite.yaml.',
  });
}
