import type { TrialKey } from '../../ledger/batches.ts';

/** The trials that other agents have, until each may be free. They are not stored on disk. */
export class TrialsElsewhere {
  readonly #monotonic: () => number;
  readonly #until = new Map<TrialKey, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Leaves a trial to another agent for some milliseconds. */
  add(trial: TrialKey, ms: number): void {
    this.#until.set(trial, this.#monotonic() + ms);
  }

  /** The trials that another agent has now. */
  keys(): TrialKey[] {
    const now = this.#monotonic();
    for (const [trial, until] of this.#until) if (until <= now) this.#until.delete(trial);
    return [...this.#until.keys()];
  }

  /** Milliseconds until the next of them may be free; undefined if there are none. */
  get nextMs(): number | undefined {
    if (this.keys().length === 0) return undefined;
    return [...this.#until.values()].reduce((one, other) => Math.min(one, other)) - this.#monotonic();
  }
}
