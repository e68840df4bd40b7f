import {
  ActivityFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import { fleetMessages } from '../../bounds/fleet.ts';
import { headroom } from './budget.ts';
import {
  type BatchDone,
  type BatchInput,
  type BatchOutcome,
  type BatchProgress,
  type FleetActivities,
  type LostTrial,
  type PlacedTrial,
  queries,
  signals,
  type TrialSummary,
  trialName,
} from './messages.ts';
import { runTrial } from './trial-activity.ts';

/**
 * Runs the trials of one batch: keeps a window of them scheduled, adds up what they found, and continues as new
 * when its history gets long. Runs in Temporal's sandbox for workflows, so it must be deterministic.
 */
export async function offsiteBatch(input: BatchInput): Promise<BatchOutcome> {
  const batch = new Batch(input);
  setHandler(defineSignal(signals.pause), () => {
    batch.isPaused = true;
  });
  setHandler(defineSignal(signals.unpause), () => {
    batch.isPaused = false;
  });
  setHandler(defineQuery<BatchProgress, [number]>(queries.progress), (after) => batch.progress(after));
  setHandler(defineQuery<TrialSummary | null, [string]>(queries.outcome), (trial) => batch.outcome(trial));
  try {
    await batch.work();
  } finally {
    // After a cancellation, the workflow ends when no sandbox of the batch is left.
    await CancellationScope.nonCancellable(() => batch.settled());
  }
  if (batch.isOver) return batch.ended();
  return continueAsNew<typeof offsiteBatch>({ ...input, done: batch.done });
}

class Batch {
  isPaused = false;
  readonly done: BatchDone;
  readonly #input: BatchInput;
  readonly #open = new Map<string, Promise<void>>();
  /** Scheduled or held trials by task queue. */
  readonly #queues = new Map<string, number>();
  readonly #results: { trial: string; summary: TrialSummary }[] = [];
  readonly #byTrial = new Map<string, TrialSummary>();
  readonly #lost: LostTrial[] = [];
  /** Where this run of the workflow began. */
  readonly #first: { scheduled: number; results: number };
  #page: PlacedTrial[] = [];

  constructor(input: BatchInput) {
    this.#input = input;
    const none = { scheduled: 0, passed: 0, failed: 0, void: 0, elsewhere: 0, lost: 0 };
    this.done = input.done ?? { ...none, spent: { tokens: 0, usd: 0 } };
    this.#first = { scheduled: this.done.scheduled, results: resultsOf(this.done) };
  }

  get isOver(): boolean {
    return this.done.scheduled >= this.#input.trials || this.#isOutOfBudget;
  }

  async work(): Promise<void> {
    for (;;) {
      while (this.#mayStart) await this.#startNext();
      if (this.#open.size === 0 && (this.isOver || this.#isLong)) return;
      const before = { ended: resultsOf(this.done) + this.done.lost, isPaused: this.isPaused };
      await condition(
        () => resultsOf(this.done) + this.done.lost !== before.ended || this.isPaused !== before.isPaused,
      );
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#open.values());
  }

  ended(): BatchOutcome {
    return { ...this.done, outOfBudget: this.#isOutOfBudget, lostTrials: this.#lost };
  }

  progress(after: number): BatchProgress {
    const begin = Math.max(0, after - this.#first.results);
    const results = this.#results.slice(begin, begin + fleetMessages.count.page).map((result, index) => {
      return { position: this.#first.results + begin + index + 1, ...result };
    });
    const queues = [...this.#queues].map(([queue, trials]) => ({ queue, trials }));
    return { ...this.ended(), trials: this.#input.trials, isPaused: this.isPaused, queues, results };
  }

  outcome(trial: string): TrialSummary | null {
    return this.#byTrial.get(trial) ?? null;
  }

  /** Whether nothing more is started because the next trial might exceed the budget, and none runs that may use less. */
  get #isOutOfBudget(): boolean {
    return this.#open.size === 0 && this.done.scheduled < this.#input.trials && this.#room === 0;
  }

  /** How many trials the budget allows at a time. */
  get #room(): number {
    const { budget, trialBudget } = this.#input;
    return headroom(budget, trialBudget, this.done.spent);
  }

  get #isLong(): boolean {
    return this.done.scheduled - this.#first.scheduled >= this.#input.continueAfter;
  }

  get #mayStart(): boolean {
    const { window, trials } = this.#input;
    return (
      !this.isPaused &&
      !this.#isLong &&
      this.done.scheduled < trials &&
      this.#open.size < Math.min(window, this.#room)
    );
  }

  async #startNext(): Promise<void> {
    const { document, taskQueue, pool } = this.#input;
    if (this.#page.length === 0) {
      const { offsiteTrialPage } = proxyActivities<FleetActivities>({
        startToCloseTimeout: fleetMessages.time.page,
      });
      const from = this.done.scheduled;
      this.#page = await offsiteTrialPage({
        document,
        from,
        limit: fleetMessages.count.page,
        taskQueue,
        pool,
      });
    }
    const next = this.#page.shift();
    if (!next) throw new Error(`the list of trials ends after ${this.done.scheduled}`);
    this.done.scheduled++;
    const name = trialName(next);
    this.#count(next.queue, 1);
    const ran = this.#run(next, name).finally(() => {
      this.#count(next.queue, -1);
      this.#open.delete(name);
    });
    this.#open.set(name, ran);
  }

  async #run({ run, ordinal, queue }: PlacedTrial, name: string): Promise<void> {
    const { batch, document, heartbeatMs, priority } = this.#input;
    try {
      this.#add(name, await runTrial({ batch, document, run, ordinal }, { queue, heartbeatMs, priority }));
    } catch (error) {
      if (isCancellation(error)) return;
      this.done.lost++;
      const reason =
        error instanceof ActivityFailure ? (error.cause?.message ?? error.message) : String(error);
      if (this.#lost.length < fleetMessages.count.lost)
        this.#lost.push({ trial: name, reason: reason.slice(0, fleetMessages.bytes.text) });
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
    this.done[summary.verdict]++;
    this.done.spent.tokens += summary.tokens ?? 0;
    this.done.spent.usd += summary.usd ?? 0;
  }
}

function resultsOf({ passed, failed, void: without, elsewhere }: BatchDone): number {
  return passed + failed + without + elsewhere;
}
