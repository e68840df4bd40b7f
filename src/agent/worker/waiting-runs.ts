import type { Clock } from '../../base/clock.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';

/**
 * What a worker leaves alone for some time, by its key in the ledger. It is not stored on disk: all of it is
 * tried again after a restart.
 */
class LeftAlone<Value> {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #left = new Map<number, { value: Value; until: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  protected put(key: number, value: Value, ms: number): void {
    this.#left.set(key, { value, until: this.#clock.monotonic() + ms });
  }

  protected remove(isMeant: (value: Value, until: number) => boolean): void {
    for (const [key, { value, until }] of this.#left) if (isMeant(value, until)) this.#left.delete(key);
  }

  /** All that must still be left alone, with the milliseconds until it is tried again. */
  protected get current(): { key: number; value: Value; inMs: number }[] {
    const now = this.#clock.monotonic();
    this.remove((_, until) => until <= now);
    return [...this.#left].map(([key, { value, until }]) => ({ key, value, inMs: until - now }));
  }

  keys(): number[] {
    return this.current.map(({ key }) => key);
  }

  /** Milliseconds until the next one is tried again; undefined if none is. */
  get nextMs(): number | undefined {
    const next = this.current.reduce((least, { inMs }) => Math.min(least, inMs), Number.POSITIVE_INFINITY);
    return Number.isFinite(next) ? next : undefined;
  }
}

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

/** The runs that cannot start now. All are tried again whenever the configuration is read again. */
export class WaitingRuns extends LeftAlone<WaitingRun> {
  readonly #knownReasons = new Set<string>();

  /**
   * Keeps a run from starting for some milliseconds, or until the configuration changes. Returns whether the
   * reason is new: a reason that many runs share is logged once.
   */
  add(key: number, run: WaitingRun, ms = Number.POSITIVE_INFINITY): boolean {
    this.put(key, run, ms);
    const isNews = !this.#knownReasons.has(run.reason);
    this.#knownReasons.add(run.reason);
    return isNews;
  }

  /** Lets the runs that wait for the machine start again at once, because the machine may have changed. */
  retry(): void {
    this.remove((_, until) => Number.isFinite(until));
  }

  /** Lets every run start again, and makes every reason count as new again. */
  clear(): void {
    this.remove(() => true);
    this.#knownReasons.clear();
  }

  /** @param runId the service's id */
  forget(runId: string): void {
    this.remove(({ run }) => run === runId);
  }

  all(): WaitingRun[] {
    return this.current.map(({ value, inMs }) =>
      Number.isFinite(inMs) ? { ...value, askedAgainInMs: Math.round(inMs) } : value,
    );
  }
}

/** A trial that cannot be claimed now, and why, in the service's words. */
export interface TrialElsewhere {
  run: string;
  case: string;
  ordinal: number;
  reason: string;
  /** Milliseconds until it is asked for again: its claim may end, unless the other agent renews it. */
  askedAgainInMs: number;
}

/** The queued trials that other agents have claimed, until each may be free. */
export class TrialsElsewhere extends LeftAlone<Omit<TrialElsewhere, 'askedAgainInMs'>> {
  add(
    { key, runId: run, caseId, ordinal }: Pick<StoredTrial, 'key' | 'runId' | 'caseId' | 'ordinal'>,
    reason: string,
    ms: number,
  ) {
    this.put(key, { run, case: caseId, ordinal, reason }, ms);
  }

  /** Those of some trials, by their keys, for people. */
  shown(keys: ReadonlySet<number>): TrialElsewhere[] {
    const wanted = this.current.filter(({ key }) => keys.has(key));
    return wanted.map(({ value, inMs }) => ({ ...value, askedAgainInMs: Math.round(inMs) }));
  }
}
