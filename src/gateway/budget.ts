import type { Clock } from '../base/clock.ts';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { Budget } from '../suite/model-config.ts';
import type { BudgetAccount, BudgetLeft, ModelRole, SessionRequest, Spending } from './gateway.ts';
import { GatewayRefusal } from './room.ts';

/** An account with nothing spent yet. Its time begins at `startedAt`, epoch milliseconds. */
export function openBudget(limit: Budget, startedAt: number): BudgetAccount {
  const { time, ...withoutTime } = limit;
  // Judges have no time limit here: a trial that ends in its batch's last minute must still be graded.
  return { ...nothingSpent(limit, startedAt), judges: nothingSpent(withoutTime, startedAt) };
}

function nothingSpent(limit: Budget, startedAt: number): Spending {
  return { limit, spent: { tokens: 0, usd: 0, requests: 0, startedAt } };
}

/** What models have used, as far as it is known. */
export interface Spent {
  tokens: number;
  usd: number;
}

/** What all roles have used of an account so far. */
export function spentFrom({ spent, judges }: BudgetAccount): Spent {
  return { tokens: spent.tokens + judges.spent.tokens, usd: spent.usd + judges.spent.usd };
}

/** Why the agents of a batch may send no more requests to their models; undefined if they may. */
export function spentMessage(batch: BudgetAccount, clock: Clock): string | undefined {
  return refusalOfNext(batchPrefix, batch, clock);
}

/** The budgets for one role of a session: the trial's and its batch's. */
export interface Budgets extends Disposable {
  /**
   * Counts one more request. Throws a {@link GatewayRefusal} and aborts `spent` if a budget has nothing left.
   */
  begin(): void;
  /** As `begin`, for a request that is already counted. */
  check(): void;
  spend(used: { tokens: number; usd: number }): void;
  /** The least that is left of one of the budgets. */
  left(): BudgetLeft;
  readonly spent: AbortSignal;
}

/** The budgets of a session, by the roles that spend them. */
export interface RoleBudgets extends Disposable {
  of(role: ModelRole): Budgets;
  /** Aborts when the budgets of the agent and the user are spent. */
  readonly spent: AbortSignal;
}

/**
 * Creates the budgets of a session. Judges have separate accounts, so that an agent cannot avoid judgment by
 * spending its whole budget. The judges' time begins with their first request.
 */
export function holdRoleBudgets(
  { budget, judgeBudget = budget, batchBudget }: SessionRequest,
  clock: Clock,
): RoleBudgets {
  const working = holdBudgets(
    [
      { prefix: "the trial's budget", account: nothingSpent(budget, clock.now()) },
      ...(batchBudget ? [{ prefix: batchPrefix, account: batchBudget }] : []),
    ],
    clock,
  );
  let judging: Budgets | undefined;
  const openJudging = () =>
    holdBudgets(
      [
        { prefix: "the judges' budget", account: nothingSpent(judgeBudget, clock.now()) },
        ...(batchBudget ? [{ prefix: "the budget of the batch's judges", account: batchBudget.judges }] : []),
      ],
      clock,
    );
  return {
    of(role) {
      if (role !== 'judge') return working;
      judging ??= openJudging();
      return judging;
    },
    spent: working.spent,
    [Symbol.dispose]() {
      working[Symbol.dispose]();
      judging?.[Symbol.dispose]();
    },
  };
}

interface Held {
  /** Names it in messages. */
  prefix: string;
  account: Spending;
}

function holdBudgets(held: readonly Held[], clock: Clock): Budgets {
  const spent = new AbortController();
  const timer = new AbortController();

  const end = (message: string) => {
    if (!spent.signal.aborted) spent.abort(budgetSpent(message));
  };
  const refuseIf = (message: string | undefined) => {
    if (message === undefined) return;
    end(message);
    throw new GatewayRefusal(400, 'BUDGET_EXCEEDED', message);
  };
  for (const { prefix, account } of held) {
    const { time } = account.limit;
    if (time === undefined) continue;
    reached(clock, account.spent.startedAt + time, timer.signal).then(
      () => end(timeMessage(prefix, time)),
      (error) => {
        // Stopping the timer rejects too; report only a clock that fails by itself.
        if (!timer.signal.aborted) spent.abort(error);
      },
    );
  }
  return {
    begin() {
      for (const { prefix, account } of held) refuseIf(refusalOfNext(prefix, account, clock));
      for (const { account } of held) account.spent.requests += 1;
    },
    check() {
      for (const { prefix, account } of held) refuseIf(overMessage(prefix, account, clock));
    },
    spend({ tokens, usd }) {
      for (const { account } of held) {
        account.spent.tokens += tokens;
        account.spent.usd += usd;
      }
    },
    left() {
      const least = (of: (account: Spending) => number | undefined) => {
        const known = held.map(({ account }) => of(account)).filter((left) => left !== undefined);
        return known.length === 0 ? undefined : Math.max(0, Math.min(...known));
      };
      return {
        tokens: least(({ limit, spent }) => limit.tokens && limit.tokens - spent.tokens),
        usd: least(({ limit, spent }) => limit.usd && limit.usd - spent.usd),
        requests: least(({ limit, spent }) => limit.requests && limit.requests - spent.requests),
        until: least(({ limit, spent }) => limit.time && limit.time + spent.startedAt),
      };
    },
    spent: spent.signal,
    [Symbol.dispose]: () => timer.abort(),
  };
}

/**
 * Resolves at the time `at`, epoch milliseconds. A Node timer that is too long fires at once, so this waits
 * in steps.
 */
async function reached(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  const longest = 2 ** 31 - 1;
  for (let left = at - clock.now(); left > 0; left = at - clock.now()) {
    await clock.sleep(Math.min(left, longest), signal);
  }
}

const batchPrefix = "the batch's budget";

/** Why an account does not allow another request; undefined if it does. */
function refusalOfNext(prefix: string, account: Spending, clock: Clock): string | undefined {
  const { requests } = account.limit;
  if (requests !== undefined && account.spent.requests >= requests)
    return `${prefix} of ${requests} requests is spent`;
  return overMessage(prefix, account, clock);
}

function overMessage(prefix: string, { limit, spent }: Spending, clock: Clock): string | undefined {
  if (limit.tokens !== undefined && spent.tokens >= limit.tokens) {
    return `${prefix} of ${limit.tokens} tokens is spent: ${spent.tokens} were used`;
  }
  if (limit.usd !== undefined && spent.usd >= limit.usd) {
    return `${prefix} of ${limit.usd} USD is spent: ${spent.usd.toFixed(4)} were used`;
  }
  if (limit.time !== undefined && clock.now() - spent.startedAt >= limit.time)
    return timeMessage(prefix, limit.time);
  return undefined;
}

function timeMessage(prefix: string, time: number): string {
  return `${prefix} of ${time / 1000} s is spent`;
}

function budgetSpent(message: string): OffsiteError {
  return inputError('BUDGET_SPENT', message, {
    hint: 'Budgets of trials and batches are set under budgets in offsite.yaml.',
  });
}
