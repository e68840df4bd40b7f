import { ActivityFailure, condition, isCancellation, proxyActivities } from '@temporalio/workflow';
import { fleetMessages } from '../../bounds/fleet.ts';
import { headroom } from './budget.ts';
import {
  type BatchOutcome,
  type BatchProgress,
  type FleetActivities,
  type LostTrial,
  noneDone,
  type Pass,
  type PlacedTrial,
  type Spending,
  type TrialList,
  type TrialSummary,
  type TrialsInput,
  trialName,
} from './messages.ts';

/** Tries of one trial. Each failed one took a worker with it, or found that the worker cannot run it. */
const tries = 50;
/** A workflow that has scheduled all of its trials passes its permits on in so many steps. */
const passes = 16;

export interface TrialsParts extends TrialsInput {
  list: TrialList;
  /** How many trials may be scheduled at a time. */
  permits: number;
  isPaused: boolean;
  /** Whether more permits and more budget arrive with {@link Trials.receive}. */
  awaits: boolean;
  /** Passes on what this workflow does not need any more. */
  pass?: ((pass: Pass) => Promise<void>) | undefined;
  /** Called once, when the first trials are scheduled. */
  begun?: (() => Promise<void>) | undefined;
}

/** Runs trials of a batch as activities: as many at a time as permits and budget allow. Deterministic. */
export class Trials {
  readonly done = noneDone();
  readonly #parts: TrialsParts;
  readonly #open = new Map<string, Promise<void>>();
  readonly #results: { trial: string; summary: TrialSummary }[] = [];
  readonly #byTrial = new Map<string, TrialSummary>();
  readonly #lost: LostTrial[] = [];
  #page: PlacedTrial[] = [];
  #permits: number;
  #budget: Spending;
  #awaits: boolean;
  #isPaused: boolean;
  #step: number | undefined;
  #isBegun = false;
  /** Counts what may let more trials start, or end the work. */
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
      await this.#tellBegun();
      if (await this.#passOn()) return;
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

  /** Takes over what another workflow passes on. */
  receive({ permits, budget, isLast }: Pass): void {
    this.#permits += permits;
    this.#budget = sumOf(this.#budget, budget, 1);
    if (isLast) this.#awaits = false;
    this.#changes++;
  }

  ended(): BatchOutcome {
    return { ...this.done, outOfBudget: this.#isOutOfBudget, lostTrials: this.#lost };
  }

  /** @param after how many results the asker has */
  progress(after: number): BatchProgress {
    const results = this.#results
      .slice(after, after + fleetMessages.count.page)
      .map((result, index) => ({ position: after + index + 1, ...result }));
    return { ...this.ended(), trials: this.#parts.list.count, isPaused: this.#isPaused, results };
  }

  outcome(trial: string): TrialSummary | null {
    return this.#byTrial.get(trial) ?? null;
  }

  /** Whether nothing more is started: the next trial may exceed the budget, and none runs that may use less. */
  get #isOutOfBudget(): boolean {
    return !this.#awaits && this.#open.size === 0 && !this.#isAllScheduled && this.#room === 0;
  }

  get #isAllScheduled(): boolean {
    return this.done.scheduled >= this.#parts.list.count;
  }

  get #isOver(): boolean {
    return !this.#awaits && this.#open.size === 0 && (this.#isAllScheduled || this.#isOutOfBudget);
  }

  /** How many trials the budget allows at a time. */
  get #room(): number {
    return headroom(this.#budget, this.#parts.trialBudget, this.done.spent);
  }

  get #mayStart(): boolean {
    return !this.#isPaused && !this.#isAllScheduled && this.#open.size < Math.min(this.#permits, this.#room);
  }

  async #readPage(): Promise<void> {
    const { document, taskQueue, pool, list } = this.#parts;
    const { offsiteTrialPage } = proxyActivities<FleetActivities>({
      taskQueue,
      startToCloseTimeout: fleetMessages.time.page,
    });
    const { scheduled } = this.done;
    const first = list.first + scheduled * list.step;
    const count = Math.min(fleetMessages.count.page, list.count - scheduled);
    this.#page = await offsiteTrialPage({ document, list: { ...list, first, count }, taskQueue, pool });
    if (this.#page.length === 0) throw new Error(`the list of trials ends after ${scheduled}`);
  }

  #startNext(): void {
    const next = this.#page.shift();
    if (!next) return;
    this.done.scheduled++;
    const name = trialName(next);
    const ran = this.#run(next, name).finally(() => {
      this.#open.delete(name);
      this.#changes++;
    });
    this.#open.set(name, ran);
  }

  async #run({ run, ordinal, queue }: PlacedTrial, name: string): Promise<void> {
    const { batch, group = batch, document, heartbeatMs, priority } = this.#parts;
    const { offsiteTrial } = proxyActivities<FleetActivities>({
      activityId: name,
      taskQueue: queue,
      heartbeatTimeout: heartbeatMs,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // A trial ends by the timeouts of its own phases; this is for what nobody thought of.
      startToCloseTimeout: '7 days',
      retry: { initialInterval: '1 second', maximumInterval: '1 minute', maximumAttempts: tries },
      priority: { priorityKey: priority, fairnessKey: group.slice(0, 64) },
    });
    try {
      this.#add(name, summaryOf(await offsiteTrial({ batch, document, run, ordinal })));
    } catch (error) {
      if (isCancellation(error)) return;
      this.done.lost++;
      const reason =
        error instanceof ActivityFailure ? (error.cause?.message ?? error.message) : String(error);
      if (this.#lost.length < fleetMessages.count.lost)
        this.#lost.push({ trial: name, reason: reason.slice(0, fleetMessages.bytes.text) });
    }
  }

  #add(trial: string, summary: TrialSummary): void {
    this.#results.push({ trial, summary });
    this.#byTrial.set(trial, summary);
    this.done[summary.verdict]++;
    this.done.spent.tokens += summary.tokens ?? 0;
    this.done.spent.usd += summary.usd ?? 0;
  }

  async #tellBegun(): Promise<void> {
    if (this.#isBegun || this.done.scheduled === 0) return;
    this.#isBegun = true;
    await this.#parts.begun?.();
  }

  /** Passes on what is free once no more trials are started here. Resolves with whether the work is over. */
  async #passOn(): Promise<boolean> {
    const { pass, trialBudget } = this.#parts;
    // Not what it is after the call: this is what the call says.
    const isOver = this.#isOver;
    // Without a first trial here, nobody has started the next workflow.
    if (!pass || !this.#isBegun || !(this.#isAllScheduled || isOver)) return isOver;
    this.#step ??= Math.max(1, Math.ceil(this.#permits / passes));
    const permits = this.#permits - this.#open.size;
    if (permits < this.#step && !isOver) return false;
    const { spent } = this.done;
    const kept: Spending = {
      tokens: spent.tokens + this.#open.size * (trialBudget.tokens ?? 0),
      usd: spent.usd + this.#open.size * (trialBudget.usd ?? 0),
    };
    const budget = sumOf(this.#budget, kept, -1);
    this.#permits -= permits;
    this.#budget = sumOf(this.#budget, budget, -1);
    await pass({ permits, budget, isLast: isOver });
    return isOver;
  }
}

const verdicts: readonly string[] = ['passed', 'failed', 'void', 'elsewhere'];

/** Who may complete a trial by hand may say anything. Throws for what is no summary; numbers never lower a sum. */
function summaryOf(given: TrialSummary): TrialSummary {
  if (!verdicts.includes(given?.verdict)) throw new Error('the trial was completed without a verdict');
  const atLeastZero = (value: unknown) =>
    typeof value === 'number' && Number.isFinite(value) ? Math.max(0, value) : undefined;
  return { ...given, tokens: atLeastZero(given.tokens), usd: atLeastZero(given.usd) };
}

/** What is unlimited stays so. */
function sumOf(budget: Spending, other: Spending, sign: 1 | -1): Spending {
  const { tokens, usd } = budget;
  return {
    ...(tokens !== undefined && { tokens: tokens + sign * (other.tokens ?? 0) }),
    ...(usd !== undefined && { usd: usd + sign * (other.usd ?? 0) }),
  };
}
