import {
  ActivityFailure,
  ApplicationFailure,
  condition,
  isCancellation,
  proxyActivities,
} from '@temporalio/workflow';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { TrialList, TrialOrder } from '../worker/orders.ts';
import {
  type BatchOutcome,
  type BatchProgress,
  type FleetActivities,
  type PlacedTrial,
  type Share,
  type Spending,
  sumOf,
  type TrialSummary,
  type TrialsInput,
  totalOf,
  trialName,
} from './messages.ts';

/** A workflow that has scheduled all of its trials gives its permits back in this number of steps. */
const steps = 16;

export interface TrialsParts extends TrialsInput, Share {
  list: TrialList;
  isPaused: boolean;
  /** Whether more of the budget may arrive with {@link Trials.take}. */
  awaits: boolean;
  /** Gives back what this workflow does not need any more. */
  giveBack?: (share: Share) => Promise<void>;
}

/** Runs trials of a batch as activities: as many at a time as permits and budget allow. Deterministic. */
export class Trials {
  readonly #parts: TrialsParts;
  readonly #open = new Map<string, Promise<void>>();
  /** Scheduled or held trials by task queue. */
  readonly #queues = new Map<string, number>();
  readonly #results: { trial: string; summary: TrialSummary }[] = [];
  readonly #byTrial = new Map<string, TrialSummary>();
  readonly #outcome = totalOf([]);
  #page: PlacedTrial[] = [];
  #permits: number;
  #budget: Spending;
  #awaits: boolean;
  #isPaused: boolean;
  #step: number | undefined;
  /** Counts the changes after which more trials may start, or the work may end. */
  #changes = 0;

  constructor(parts: TrialsParts) {
    this.#parts = parts;
    this.#permits = parts.permits;
    this.#budget = parts.budget;
    this.#awaits = parts.awaits;
    this.#isPaused = parts.isPaused;
  }

  async work(): Promise<void> {
    for (;;) {
      const before = this.#changes;
      while (this.#mayStart) {
        if (this.#page.length === 0) await this.#readPage();
        if (this.#mayStart) this.#startNext();
      }
      await this.#giveBack();
      if (this.#isOver) return;
      await condition(() => this.#changes !== before);
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#open.values());
  }

  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.#changes++;
  }

  /** Takes more of what the batch may use. */
  take({ permits, budget }: Share, awaits: boolean): void {
    this.#permits += permits;
    this.#budget = sumOf(this.#budget, budget, 1);
    this.#awaits = awaits;
    this.#changes++;
  }

  ended(): BatchOutcome {
    return { ...this.#outcome, outOfBudget: this.#isOutOfBudget };
  }

  /** @param after how many results the asker has */
  progress(after: number): BatchProgress {
    const results = this.#results
      .slice(after, after + fleetMessages.count.page)
      .map((result, index) => ({ position: after + index + 1, ...result }));
    const queues = [...this.#queues].map(([queue, trials]) => ({ queue, trials }));
    const { count: trials } = this.#parts.list;
    return { ...this.ended(), trials, isPaused: this.#isPaused, queues, results };
  }

  outcome(trial: string): TrialSummary | null {
    return this.#byTrial.get(trial) ?? null;
  }

  /**
   * Whether the budget ends the work: the next trial may exceed it, and no trial runs that may use less than
   * its limit.
   */
  get #isOutOfBudget(): boolean {
    return !this.#awaits && this.#open.size === 0 && !this.#isAllScheduled && this.#room === 0;
  }

  get #isAllScheduled(): boolean {
    return this.#outcome.scheduled >= this.#parts.list.count;
  }

  get #isOver(): boolean {
    return this.#open.size === 0 && (this.#isAllScheduled || this.#isOutOfBudget);
  }

  /** How many trials the budget allows at a time. */
  get #room(): number {
    return headroom(this.#budget, this.#parts.trialBudget, this.#outcome.spent);
  }

  get #mayStart(): boolean {
    return !this.#isPaused && !this.#isAllScheduled && this.#open.size < Math.min(this.#permits, this.#room);
  }

  async #readPage(): Promise<void> {
    const { document, taskQueue, pool, list } = this.#parts;
    const { offsiteTrialPage } = proxyActivities<FleetActivities>({
      startToCloseTimeout: fleetMessages.time.page,
    });
    const { scheduled } = this.#outcome;
    const first = list.first + scheduled;
    const count = Math.min(fleetMessages.count.page, list.count - scheduled);
    this.#page = await offsiteTrialPage({ document, list: { first, count }, taskQueue, pool });
    if (this.#page.length === 0) throw new Error(`the list of trials ends after ${scheduled}`);
  }

  #startNext(): void {
    const next = this.#page.shift();
    if (!next) return;
    this.#outcome.scheduled++;
    const name = trialName(next);
    this.#count(next.queue, 1);
    const ran = this.#run(next, name).finally(() => {
      this.#count(next.queue, -1);
      this.#open.delete(name);
      this.#changes++;
    });
    this.#open.set(name, ran);
  }

  async #run({ run, ordinal, queue }: PlacedTrial, name: string): Promise<void> {
    const { batch, group, document, heartbeatMs, priority } = this.#parts;
    const order = { batch, document, run, ordinal };
    try {
      this.#add(name, await runTrial(order, { queue, heartbeatMs, priority, group }));
    } catch (error) {
      if (isCancellation(error)) return;
      const { lostTrials } = this.#outcome;
      this.#outcome.lost++;
      const reason =
        error instanceof ActivityFailure ? (error.cause?.message ?? error.message) : String(error);
      if (lostTrials.length < fleetMessages.count.lost)
        lostTrials.push({ trial: name, reason: reason.slice(0, fleetMessages.bytes.text) });
    }
  }

  #count(queue: string, change: number): void {
    const count = (this.#queues.get(queue) ?? 0) + change;
    if (count > 0) this.#queues.set(queue, count);
    else this.#queues.delete(queue);
  }

  #add(trial: string, summary: TrialSummary): void {
    this.#results.push({ trial, summary });
    this.#byTrial.set(trial, summary);
    this.#outcome[summary.verdict]++;
    this.#outcome.spent.tokens += summary.tokens ?? 0;
    this.#outcome.spent.usd += summary.usd ?? 0;
  }

  /** Gives back what is free once all trials are scheduled. What is left at the end is known without that. */
  async #giveBack(): Promise<void> {
    const { giveBack, trialBudget } = this.#parts;
    if (!giveBack || !this.#isAllScheduled || this.#open.size === 0) return;
    this.#step ??= Math.max(1, Math.ceil(this.#permits / steps));
    const permits = this.#permits - this.#open.size;
    if (permits < this.#step) return;
    const { spent } = this.#outcome;
    const kept: Spending = {
      tokens: spent.tokens + this.#open.size * (trialBudget.tokens ?? 0),
      usd: spent.usd + this.#open.size * (trialBudget.usd ?? 0),
    };
    const budget = sumOf(this.#budget, kept, -1);
    this.#permits -= permits;
    this.#budget = sumOf(this.#budget, budget, -1);
    try {
      await giveBack({ permits, budget });
    } catch (error) {
      if (isCancellation(error)) throw error;
      // It stays here, and is given back again later, or when this workflow ends.
      this.#permits += permits;
      this.#budget = sumOf(this.#budget, budget, 1);
    }
  }
}

/**
 * How many trials may run at a time so that the budget suffices even if each uses all that it is allowed.
 * Without a limit for a trial, trials run until the budget is spent. Infinity without a budget.
 */
function headroom(budget: Spending, trial: Spending, spent: { tokens: number; usd: number }): number {
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

/** Tries of one trial. In each failed one, the worker was lost or could not run the trial. */
const tries = 50;

export interface TrialSettings {
  /** The task queue of workers that have what the trial needs. */
  queue: string;
  heartbeatMs: number;
  /** From 1, the most urgent, to 5. */
  priority: number;
  /** Batches of one group share what one batch would get. Without it, the trial's batch is the group. */
  group?: string | undefined;
}

/**
 * Runs a trial on a worker, as an activity with the id `run/ordinal`. Rejects if no worker could run it, or
 * if somebody completed it with something that is not a summary.
 */
export async function runTrial(
  order: TrialOrder,
  { queue, heartbeatMs, priority, group = order.batch }: TrialSettings,
): Promise<TrialSummary> {
  const { offsiteTrial } = proxyActivities<FleetActivities>({
    activityId: trialName(order),
    taskQueue: queue,
    heartbeatTimeout: heartbeatMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    // A trial ends by the timeouts of its own phases. This limit is for unforeseen cases.
    startToCloseTimeout: '7 days',
    retry: { initialInterval: '1 second', maximumInterval: '1 minute', maximumAttempts: tries },
    priority: { priorityKey: priority, fairnessKey: group.slice(0, 64) },
  });
  return summaryOf(await offsiteTrial(order));
}

const verdicts: readonly string[] = ['passed', 'failed', 'void', 'elsewhere'];

/**
 * Checks a summary, because a person who completes a trial by hand can write anything. Throws if it has no
 * verdict. Negative numbers count as 0, so that they never lower a sum.
 */
function summaryOf(given: TrialSummary): TrialSummary {
  if (!verdicts.includes(given?.verdict))
    throw ApplicationFailure.nonRetryable('the trial was completed without a verdict', 'NoVerdict');
  const atLeastZero = (value: unknown) =>
    typeof value === 'number' && Number.isFinite(value) ? Math.max(0, value) : undefined;
  return { ...given, tokens: atLeastZero(given.tokens), usd: atLeastZero(given.usd) };
}
