import {
  type ChildWorkflowHandle,
  condition,
  ParentClosePolicy,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import { fleetMessages } from '../../bounds/fleet.ts';
import {
  type BatchInput,
  type BatchOutcome,
  type BatchProgress,
  countNames,
  type LostTrial,
  noneDone,
  type SliceInput,
  signals,
  sliceWorkflow,
} from './messages.ts';
import type { Served } from './serve.ts';
import type { offsiteSlice } from './slice.ts';
import { Slicing } from './slicing.ts';

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
    const {
      trials: _trials,
      window: _window,
      slice: _slice,
      lane: _lane,
      plan: _plan,
      ...shared
    } = this.#input;
    const { lanes, count } = this.#slicing;
    const isFirst = index < lanes;
    const isPaused = this.#isPaused;
    const { tokens, usd } = shared.budget;
    const nothing = { ...(tokens !== undefined && { tokens: 0 }), ...(usd !== undefined && { usd: 0 }) };
    const input: SliceInput = {
      ...{ ...shared, index, isPaused, awaits: !isFirst, list: this.#slicing.list(index) },
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
