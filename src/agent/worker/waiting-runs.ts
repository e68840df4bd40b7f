import type { Clock } from '../../base/clock.ts';
import type { RunKey, TrialKey } from '../../ledger/batches.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';

/** A run whose trials do not start now, and why. */
export interface WaitingRun {
  /** `waiting` until the configuration or the machine changes; `parked` because it can never run here. */
  kind: 'waiting' | 'parked';
  run: string;
  case: string;
  reason: string;
  /** Milliseconds until it is tried again; undefined if it waits for the configuration. */
  askedAgainInMs?: number;
}

/** Milliseconds until a run that waits for the machine, not for the configuration, is tried again. */
export const retryMs = 60_000;

/**
 * The runs that cannot start now. They are not stored on disk: all are tried again after a restart, and
 * whenever the configuration is read again.
 */
export class WaitingRuns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #runs = new Map<RunKey, WaitingRun & { retryAt: number }>();
  readonly #knownReasons = new Set<string>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /**
   * Keeps a run from starting for some milliseconds, or until the configuration changes. Returns whether the
   * reason is new: a reason that many runs share is logged once.
   */
  add(key: RunKey, run: WaitingRun, ms = Number.POSITIVE_INFINITY): boolean {
    const retryAt = this.#clock.monotonic() + ms;
    this.#runs.set(key, { ...run, retryAt });
    const isNews = !this.#knownReasons.has(run.reason);
    this.#knownReasons.add(run.reason);
    return isNews;
  }

  /** The keys of the runs that must not start now. */
  keys(): RunKey[] {
    const now = this.#clock.monotonic();
    for (const [key, { retryAt }] of this.#runs) if (retryAt <= now) this.#runs.delete(key);
    return [...this.#runs.keys()];
  }

  /** Lets the runs that wait for the machine start again at once, because the machine may have changed. */
  retry(): void {
    for (const [key, { retryAt }] of this.#runs) if (Number.isFinite(retryAt)) this.#runs.delete(key);
  }

  /** Lets every run start again, and makes every reason count as new again. */
  clear(): void {
    this.#runs.clear();
    this.#knownReasons.clear();
  }

  /** @param runId the service's id */
  forget(runId: string): void {
    for (const [key, { run }] of this.#runs) if (run === runId) this.#runs.delete(key);
  }

  all(): WaitingRun[] {
    const now = this.#clock.monotonic();
    return [...this.#runs.values()].map(({ retryAt, ...run }) =>
      Number.isFinite(retryAt) ? { ...run, askedAgainInMs: Math.max(0, Math.round(retryAt - now)) } : run,
    );
  }

  /** Milliseconds until the next of them is tried again; undefined if none is. */
  get nextMs(): number | undefined {
    const due = this.all().flatMap(({ askedAgainInMs }) => askedAgainInMs ?? []);
    return due.length === 0 ? undefined : due.reduce((least, ms) => Math.min(least, ms));
  }
}

/** What a person is shown of a trial. */
type NamedTrial = Pick<StoredTrial, 'key' | 'runId' | 'caseId' | 'ordinal'>;

/** A queued trial that another agent has claimed. */
export interface TrialElsewhere {
  trial: NamedTrial;
  /** When its claim ends unless it is renewed, in monotonic milliseconds. */
  until: number;
}

/** The trials that other agents have, until each may be free. They are not stored on disk. */
export class TrialsElsewhere {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #trials = new Map<TrialKey, TrialElsewhere>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Leaves a trial to another agent for some milliseconds. */
  add({ key, runId, caseId, ordinal }: NamedTrial, ms: number): void {
    this.#trials.set(key, { trial: { key, runId, caseId, ordinal }, until: this.#clock.monotonic() + ms });
  }

  /** The trials that another agent has now. */
  all(): TrialElsewhere[] {
    const now = this.#clock.monotonic();
    for (const [key, { until }] of this.#trials) if (until <= now) this.#trials.delete(key);
    return [...this.#trials.values()];
  }

  keys(): TrialKey[] {
    return this.all().map(({ trial }) => trial.key);
  }

  /** Milliseconds until the next of them may be free; undefined if there are none. */
  get nextMs(): number | undefined {
    const all = this.all();
    const first = all.reduce((least, { until }) => Math.min(least, until), Number.POSITIVE_INFINITY);
    return all.length === 0 ? undefined : first - this.#clock.monotonic();
  }
}
