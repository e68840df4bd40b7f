import {
  CancellationScope,
  type ChildWorkflowHandle,
  condition,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { TrialList } from '../worker/orders.ts';
import {
  type BatchInput,
  type BatchOutcome,
  type BatchProgress,
  queries,
  type Share,
  type SliceInput,
  signals,
  sliceWorkflow,
  sumOf,
  type TrialSummary,
  totalOf,
} from './messages.ts';
import { Trials } from './trials.ts';

/** A larger batch has larger slices, if they may be: each adds about 150 events to the batch's history. */
const usualSlices = 250;

interface Slice {
  id: string;
  isOpen: boolean;
  /** Whether it has trials that it has not scheduled, as far as is known here. */
  takes: boolean;
  /** Whether it was told that it may get more. */
  awaits: boolean;
  /** What it was given and has not given back. */
  has: Share;
  /** The most permits that it can use. */
  most: number;
  handle: Promise<ChildWorkflowHandle<typeof offsiteSlice>>;
}

/**
 * Runs the trials of a large batch in child workflows, each of which takes the next part of the list. What no
 * slice uses of the window and of the budget is here. It goes to the slices that still schedule trials, and
 * starts the next slice if these need no more: so the first trials of a slice run beside the last of those
 * before it, and several slices run at a time if the window is larger than what one workflow can hold.
 */
export class Slices implements Served {
  readonly #input: BatchInput;
  readonly #isLimited: boolean;
  readonly #parts: TrialList[];
  readonly #slices: Slice[] = [];
  #free: Share;
  #isPaused = false;
  #outcome = totalOf([]);
  #failure: { error: unknown } | undefined;

  constructor(input: BatchInput) {
    const { window, lane, budget } = input;
    this.#input = input;
    this.#parts = partsOf(input);
    this.#isLimited = isLimited(input);
    this.#free = { permits: this.#isLimited ? Math.min(window, lane) : window, budget };
  }

  async work(): Promise<void> {
    setHandler(defineSignal<[number, Share]>(signals.free), (index, share) => this.#takeBack(index, share));
    this.#divide();
    await condition(() => this.#failure !== undefined || !this.#slices.some(({ isOpen }) => isOpen));
    if (this.#failure) throw this.#failure.error;
  }

  async settled(): Promise<void> {
    await condition(() => !this.#slices.some(({ isOpen }) => isOpen));
  }

  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    for (const slice of this.#slices) this.#signal(slice, isPaused ? signals.pause : signals.unpause);
  }

  ended(): BatchOutcome {
    return this.#outcome;
  }

  progress(): BatchProgress {
    const slices = this.#slices.map(({ id, isOpen }) => ({ id, isOpen }));
    const { trials } = this.#input;
    return { ...this.#outcome, trials, isPaused: this.#isPaused, queues: [], results: [], slices };
  }

  outcome(): null {
    return null;
  }

  /** A slice that gives something back has scheduled all of its trials. */
  #takeBack(index: number, share: Share): void {
    const slice = this.#slices[index];
    if (!slice?.isOpen) return;
    slice.takes = false;
    slice.has = shareOf(slice.has, share, -1);
    this.#free = shareOf(this.#free, share, 1);
    this.#divide();
  }

  #divide(): void {
    const taking = this.#slices.filter(({ isOpen, takes }) => isOpen && takes);
    for (const slice of taking)
      this.#give(slice, Math.min(this.#free.permits, slice.most - slice.has.permits));
    const next = this.#parts[this.#slices.length];
    if (!next || this.#outcome.outOfBudget || this.#failure !== undefined) return;
    if (this.#free.permits <= 0 || (this.#isLimited && taking.length > 0)) return;
    this.#start(next, Math.min(this.#input.lane, next.count));
    this.#divide();
  }

  #give(slice: Slice, permits: number): void {
    const share = { permits, budget: this.#free.budget };
    const awaits = this.#isLimited && this.#slices.some((other) => other !== slice && other.isOpen);
    const { tokens = 0, usd = 0 } = share.budget;
    if (permits === 0 && tokens === 0 && usd === 0 && awaits === slice.awaits) return;
    slice.awaits = awaits;
    slice.has = shareOf(slice.has, share, 1);
    this.#free = shareOf(this.#free, share, -1);
    this.#signal(slice, signals.take, share, awaits);
  }

  #start(list: TrialList, most: number): void {
    const { trials: _trials, window: _window, slice: _slice, lane: _lane, ...shared } = this.#input;
    const index = this.#slices.length;
    const id = `${workflowInfo().workflowId}/slice-${index + 1}`;
    const has = { permits: Math.min(this.#free.permits, most), budget: this.#free.budget };
    const awaits = this.#isLimited && this.#slices.some(({ isOpen }) => isOpen);
    const input: SliceInput = { ...shared, ...has, index, list, awaits, isPaused: this.#isPaused };
    const handle = startChild<typeof offsiteSlice>(sliceWorkflow, {
      workflowId: id,
      args: [input],
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // Its sandboxes end even if somebody ends the batch's workflow by force.
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    });
    const slice = { id, handle, has, most, awaits, isOpen: true, takes: true };
    this.#free = shareOf(this.#free, has, -1);
    this.#slices.push(slice);
    void this.#follow(slice);
  }

  /** Never rejects. */
  async #follow(slice: Slice): Promise<void> {
    try {
      const outcome = await (await slice.handle).result();
      const total = totalOf([this.#outcome, outcome]);
      this.#outcome = { ...total, lostTrials: total.lostTrials.slice(0, fleetMessages.count.lost) };
      const { permits, budget } = slice.has;
      this.#free = shareOf(this.#free, { permits, budget: sumOf(budget, outcome.spent, -1) }, 1);
    } catch (error) {
      this.#failure ??= { error };
    } finally {
      slice.isOpen = false;
    }
    this.#divide();
  }

  /** A slice that has ended need not know. */
  #signal(slice: Slice, signal: string, ...content: unknown[]): void {
    if (!slice.isOpen) return;
    void slice.handle.then((handle) => handle.signal(signal, ...content)).catch(() => undefined);
  }
}

function shareOf(one: Share, other: Share, sign: 1 | -1): Share {
  return {
    permits: one.permits + sign * other.permits,
    budget: sumOf(one.budget, other.budget, sign),
  };
}

/** With a budget, one slice at a time schedules trials: only an undivided budget can be spent completely. */
function isLimited({ budget }: BatchInput): boolean {
  return budget.tokens !== undefined || budget.usd !== undefined;
}

/**
 * The parts of the list of trials, one for each slice, as even as they can be. They are so many that at any
 * time enough slices can run to use the whole window.
 */
export function partsOf(input: BatchInput): TrialList[] {
  const { trials, slice, window, lane } = input;
  // A slice that is over soon after it begins would only pass permits around.
  const usual = Math.max(slice, 2 * Math.min(window, lane), Math.ceil(trials / usualSlices));
  const size = Math.min(usual, Math.max(slice, fleetMessages.count.slice));
  const together = isLimited(input) ? 1 : Math.min(Math.ceil(window / lane), Math.ceil(trials / slice));
  const count = together * Math.ceil(trials / size / together);
  const firstOf = (index: number) => Math.floor((index * trials) / count);
  return Array.from({ length: count }, (_, index) => {
    const first = firstOf(index);
    return { first, count: firstOf(index + 1) - first };
  });
}

/** Runs one part of a batch's trials. The batch's own workflow starts it. */
export async function offsiteSlice(input: SliceInput): Promise<BatchOutcome> {
  const { parent } = workflowInfo();
  const giveBack = async (share: Share) => {
    if (!parent) return;
    const batch = getExternalWorkflowHandle(parent.workflowId);
    await batch.signal(signals.free, input.index, share);
  };
  const trials = new Trials({ ...input, giveBack });
  setHandler(defineSignal<[Share, boolean]>(signals.take), (share, awaits) => trials.take(share, awaits));
  await serve(trials);
  return trials.ended();
}

/** What runs trials and can be asked about them. */
interface Served {
  /** Rejects if the workflow is canceled. */
  work(): Promise<void>;
  /** Resolves when no sandbox is left. */
  settled(): Promise<void>;
  pause(isPaused: boolean): void;
  progress(after: number): BatchProgress;
  outcome(trial: string): TrialSummary | null;
}

/** Works, with the signals and queries that all workflows of a batch have. */
export async function serve(served: Served): Promise<void> {
  setHandler(defineSignal(signals.pause), () => served.pause(true));
  setHandler(defineSignal(signals.unpause), () => served.pause(false));
  setHandler(defineQuery<BatchProgress, [number]>(queries.progress), (after) => served.progress(after));
  setHandler(defineQuery<TrialSummary | null, [string]>(queries.outcome), (trial) => served.outcome(trial));
  try {
    await served.work();
  } finally {
    // After a cancellation, the workflow ends when no sandbox of its trials is left.
    await CancellationScope.nonCancellable(() => served.settled());
  }
}
