import type { TrialKey } from '../../ledger/batches.ts';
import type { QueuedTrial } from '../../ledger/queue.ts';

/** What a person is shown of a trial. */
type NamedTrial = Pick<QueuedTrial, 'key' | 'runId' | 'caseId' | 'ordinal'>;

/** A queued trial that another agent has claimed. */
export interface TrialElsewhere {
  trial: NamedTrial;
  /** When its claim ends unless it is renewed, in monotonic milliseconds. */
  until: number;
}

/** The trials that other agents have, until each may be free. They are not stored on disk. */
export class TrialsElsewhere {
  readonly #monotonic: () => number;
  readonly #trials = new Map<TrialKey, TrialElsewhere>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Leaves a trial to another agent for some milliseconds. */
  add({ key, runId, caseId, ordinal }: NamedTrial, ms: number): void {
    this.#trials.set(key, { trial: { key, runId, caseId, ordinal }, until: this.#monotonic() + ms });
  }

  /** The trials that another agent has now. */
  all(): TrialElsewhere[] {
    const now = this.#monotonic();
    for (const [key, { until }] of this.#trials) if (until <= now) this.#trials.delete(key);
    return [...this.#trials.values()];
  }

  keys(): TrialKey[] {
    return this.all().map(({ trial }) => trial.key);
  }

  /** Milliseconds until the next of them may be free; undefined if there are none. */
  get nextMs(): number | undefined {
    const all = this.all();
    if (all.length === 0) return undefined;
    return (
      all.reduce((least, { until }) => Math.min(least, until), Number.POSITIVE_INFINITY) - this.#monotonic()
    );
  }
}
