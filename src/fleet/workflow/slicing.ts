import type { BatchInput, Spending, TrialList, TrialsInput } from './messages.ts';

/**
 * Divides a batch into slices. Slices of a lane run one after another, and each passes its permits on to the
 * next while its last trials run. Lanes run side by side. They take the trials of a part in turn, so the
 * whole batch advances in the order of its list.
 */
export class Slicing {
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
