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
  /** Set if something was used whose price is not known. */
  isPartial?: true;
}

/** What all roles have used of an account so far. */
export function spentFrom({ spent, judges }: BudgetAccount): Spent {
  return {
    tokens: spent.tokens + judges.spent.tokens,
    usd: spent.usd + judges.spent.usd,
    ...((spent.isPartial || judges.spent.isPartial) && { isPartial: true }),
  };
}

/** Why the agents of a batch may send no more requests to their models; undefined if they may. */
export function spentMessage(batch: BudgetAccount, clock: Clock): string | undefined {
  return refusalOfNext(batchHeld(batch), clock);
}

/** The budgets for one role of a session: the trial's and its batch's. */
export interface Budgets extends Disposable {
  /**
   * Counts one more request. Throws a {@link GatewayRefusal} and aborts `spent` if a budget has nothing left.
   */
  begin(): void;
  /** As `begin`, for a request that is already counted. */
  check(): void;
  spend(used: Spent): void;
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
  const judgesKey = judgeBudget === budget ? 'trial' : 'judges';
  const working = holdBudgets(
    [
      { name: "the trial's budget", key: 'trial', account: nothingSpent(budget, clock.now()) },
      ...(batchBudget ? [batchHeld(batchBudget)] : []),
    ],
    clock,
  );
  let judging: Budgets | undefined;
  const openJudging = () =>
    holdBudgets(
      [
        { name: "the judges' budget", key: judgesKey, account: nothingSpent(judgeBudget, clock.now()) },
        ...(batchBudget
          ? [{ name: "the budget of the batch's judges", key: 'batch', account: batchBudget.judges } as const]
          : []),
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
  name: string;
  /** Of `budgets` in the configuration. */
  key: 'trial' | 'judges' | 'batch';
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
  for (const one of held) {
    const { account } = one;
    const { time } = account.limit;
    if (time === undefined) continue;
    reached(clock, account.spent.startedAt + time, timer.signal).then(
      () => end(timeMessage(one, time)),
      (error) => {
        // Stopping the timer rejects too; report only a clock that fails by itself.
        if (!timer.signal.aborted) spent.abort(error);
      },
    );
  }
  return {
    begin() {
      for (const one of held) refuseIf(refusalOfNext(one, clock));
      for (const { account } of held) account.spent.requests += 1;
    },
    check() {
      for (const one of held) refuseIf(overMessage(one, clock));
    },
    spend({ tokens, usd, isPartial }) {
      for (const { account } of held) {
        account.spent.tokens += tokens;
        account.spent.usd += usd;
        if (isPartial) account.spent.isPartial = true;
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

function batchHeld(account: BudgetAccount): Held {
  return { name: "the batch's budget", key: 'batch', account };
}

/** Why an account does not allow another request; undefined if it does. */
function refusalOfNext(held: Held, clock: Clock): string | undefined {
  const { limit, spent } = held.account;
  if (limit.requests !== undefined && spent.requests >= limit.requests)
    return spentText(held, 'requests', `${limit.requests} requests`);
  return overMessage(held, clock);
}

function overMessage(held: Held, clock: Clock): string | undefined {
  const { limit, spent } = held.account;
  if (limit.tokens !== undefined && spent.tokens >= limit.tokens) {
    return `${spentText(held, 'tokens', `${limit.tokens} tokens`)}: ${spent.tokens} were used`;
  }
  if (limit.usd !== undefined && spent.usd >= limit.usd) {
    return `${spentText(held, 'usd', `${limit.usd} USD`)}: ${spent.usd.toFixed(4)} were used`;
  }
  if (limit.time !== undefined && clock.now() - spent.startedAt >= limit.time)
    return timeMessage(held, limit.time);
  return undefined;
}

function timeMessage(held: Held, time: number): string {
  return spentText(held, 'time', `${time / 1000} s`);
}

function spentText({ name, key }: Held, limit: keyof Budget, amount: string): string {
  return `${name} of ${amount} (budgets.${key}.${limit}) is spent`;
}

function budgetSpent(message: string): OffsiteError {
  return inputError('BUDGET_SPENT', message, {
    hint: 'Budgets of trials and batches are set under budgets in offsite.yaml.',
  });
}
