import {
  CancellationScope,
  type ChildWorkflowHandle,
  condition,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  setHandler,
  sleep,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { TrialList } from '../worker/orders.ts';
import {
  type BatchInput,
  type BatchOutcome,
  type BatchProgress,
  countNames,
  type LostTrial,
  noneDone,
  type Pass,
  queries,
  type SliceInput,
  type Spending,
  signals,
  sliceWorkflow,
  type TrialSummary,
  type TrialsInput,
} from './messages.ts';
import { Trials } from './trials.ts';

type Slice = ChildWorkflowHandle<typeof offsiteSlice>;

/**
 * Runs the trials of a large batch in child workflows. In each lane, one slice is started in advance, and
 * gets the permits of the slice before it as they become free.
 */
export class Slices implements Served {
  readonly #input: BatchInput;
  readonly #slicing: Slicing;
  readonly #id = workflowInfo().workflowId;
  readonly #done = noneDone();
  readonly #lost: LostTrial[] = [];
  /** For each slice that was started, whether it still runs. */
  readonly #isOpen = new Map<number, boolean>();
  readonly #handles = new Map<number, Slice>();
  readonly #runs: Promise<void>[] = [];
  #failure: { error: unknown } | undefined;
  #isPaused = false;
  #isOutOfBudget = false;

  constructor(input: BatchInput) {
    this.#input = input;
    this.#slicing = new Slicing(input);
  }

  async work(): Promise<void> {
    for (let lane = 0; lane < this.#slicing.lanes; lane++) this.#start(lane);
    await condition(() => this.#failure !== undefined || ![...this.#isOpen.values()].includes(true));
    if (this.#failure) throw this.#failure.error;
  }

  async settled(): Promise<void> {
    await Promise.all(this.#runs);
  }

  /** Called when a slice has started a trial: from now on, the next slice of its lane is needed. */
  begun(index: number): void {
    const next = index + this.#slicing.lanes;
    if (next < this.#slicing.count && !this.#isOpen.has(next)) this.#start(next);
  }

  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    for (const slice of this.#handles.values()) void this.#signalPause(slice);
  }

  ended(): BatchOutcome {
    return { ...this.#done, outOfBudget: this.#isOutOfBudget, lostTrials: this.#lost };
  }

  progress(): BatchProgress {
    const slices = [...this.#isOpen].map(([index, isOpen]) => ({ id: this.#name(index), isOpen }));
    const { trials } = this.#input;
    return { ...this.ended(), trials, isPaused: this.#isPaused, queues: [], results: [], slices };
  }

  outcome(): null {
    return null;
  }

  #start(index: number): void {
    this.#isOpen.set(index, true);
    this.#runs.push(this.#run(index));
  }

  /** Never rejects. */
  async #run(index: number): Promise<void> {
    try {
      this.#add(await (await this.#opened(index)).result());
    } catch (error) {
      this.#failure ??= { error };
    } finally {
      this.#isOpen.set(index, false);
      this.#handles.delete(index);
    }
  }

  async #opened(index: number): Promise<Slice> {
    const { trials: _trials, window: _window, slice: _slice, lane: _lane, ...shared } = this.#input;
    const { lanes, count } = this.#slicing;
    const isFirst = index < lanes;
    const isPaused = this.#isPaused;
    const { tokens, usd } = shared.budget;
    const nothing = { ...(tokens !== undefined && { tokens: 0 }), ...(usd !== undefined && { usd: 0 }) };
    const input: SliceInput = {
      ...shared,
      index,
      isPaused,
      awaits: !isFirst,
      list: this.#slicing.list(index),
      permits: isFirst ? this.#slicing.permits(index) : 0,
      budget: isFirst ? shared.budget : nothing,
      next: index + lanes < count ? this.#name(index + lanes) : undefined,
    };
    const slice = await startChild<typeof offsiteSlice>(sliceWorkflow, {
      workflowId: this.#name(index),
      args: [input],
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      // Its sandboxes end even if somebody ends the batch's workflow by force.
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    });
    this.#handles.set(index, slice);
    if (isPaused !== this.#isPaused) void this.#signalPause(slice);
    return slice;
  }

  /** Never rejects: a slice that has ended need not know. */
  async #signalPause(slice: Slice): Promise<void> {
    await slice.signal(this.#isPaused ? signals.pause : signals.unpause).catch(() => undefined);
  }

  #name(index: number): string {
    return `${this.#id}/slice-${index + 1}`;
  }

  #add({ outOfBudget, lostTrials, spent, ...counts }: BatchOutcome): void {
    for (const name of countNames) this.#done[name] += counts[name];
    this.#done.spent.tokens += spent.tokens;
    this.#done.spent.usd += spent.usd;
    this.#lost.push(...lostTrials.slice(0, fleetMessages.count.lost - this.#lost.length));
    this.#isOutOfBudget ||= outOfBudget;
  }
}

/**
 * Divides a batch into slices. Slices of a lane run one after another, and each passes its permits on to the
 * next while its last trials run. Lanes run side by side. They take the trials of a part in turn, so the
 * whole batch advances in the order of its list.
 */
class Slicing {
  readonly lanes: number;
  readonly count: number;
  readonly #trials: number;
  readonly #window: number;
  /** Trials of one slice. */
  readonly #size: number;

  constructor({
    trials,
    window,
    slice,
    lane,
    budget,
  }: Omit<BatchInput, keyof TrialsInput> & { budget: Spending }) {
    // With a budget there is one lane: only an undivided budget can be spent completely.
    const isLimited = budget.tokens !== undefined || budget.usd !== undefined;
    this.lanes = isLimited ? 1 : Math.min(Math.ceil(window / lane), Math.ceil(trials / slice));
    this.#trials = trials;
    this.#window = Math.min(window, this.lanes * lane);
    // Two slices of a lane are enough only if one can use all permits.
    const most = Math.max(slice, 2 * this.permits(0));
    const parts = Math.ceil(trials / (this.lanes * most));
    this.#size = Math.ceil(trials / (this.lanes * parts));
    this.count = parts * this.lanes;
  }

  /** The trials of a slice. Slice `index` belongs to the lane `index % lanes`. */
  list(index: number): TrialList {
    const lane = index % this.lanes;
    const ofPart = this.lanes * this.#size;
    const begin = Math.floor(index / this.lanes) * ofPart;
    const trials = Math.min(ofPart, this.#trials - begin);
    return {
      first: begin + lane,
      step: this.lanes,
      count: Math.ceil(Math.max(0, trials - lane) / this.lanes),
    };
  }

  /** How many trials a lane keeps scheduled. */
  permits(lane: number): number {
    return Math.floor(this.#window / this.lanes) + Number(lane < this.#window % this.lanes);
  }
}

/** Milliseconds until a workflow that is not there yet gets the signal again. */
const againMs = 1_000;

/** Runs one part of a batch's trials. The batch's own workflow starts it. */
export async function offsiteSlice(input: SliceInput): Promise<BatchOutcome> {
  const { next, index } = input;
  const { parent } = workflowInfo();
  const trials = new Trials({
    ...input,
    pass: next === undefined ? undefined : (what) => signalWorkflow(next, signals.pass, what),
    begun: parent && (() => signalWorkflow(parent.workflowId, signals.begun, index)),
  });
  setHandler(defineSignal<[Pass]>(signals.pass), (what) => trials.receive(what));
  await serve(trials);
  return trials.ended();
}

/** Signals another workflow. The next slice may not be there yet if this one is short. */
async function signalWorkflow<What>(workflow: string, signal: string, what: What): Promise<void> {
  for (;;) {
    try {
      await getExternalWorkflowHandle(workflow).signal<[What]>(signal, what);
      return;
    } catch (error) {
      if (isCancellation(error)) throw error;
      await sleep(againMs);
    }
  }
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
