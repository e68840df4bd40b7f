import type { RunKey } from '../ledger/batches.ts';

/** Why a run's trials are not begun. */
export interface WaitingRun {
  /** `waiting` for the configuration or the machine to change; `parked` since it can never be run here. */
  kind: 'waiting' | 'parked';
  run: string;
  case: string;
  reason: string;
}

/** Milliseconds until a run that waits for the machine, not for its configuration, is tried again. */
const retryMs = 60_000;

/**
 * The runs that cannot be begun now. Not on disk: after a start, and whenever the configuration is read anew,
 * all are tried again.
 */
export class WaitingRuns {
  readonly #monotonic: () => number;
  readonly #runs = new Map<RunKey, WaitingRun & { retryAt: number }>();
  readonly #told = new Set<string>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /**
   * Keeps a run from being begun: until the configuration changes, or with `again` for a minute. Says whether
   * that is news: a reason that is many runs' is told once.
   */
  add(key: RunKey, run: WaitingRun, { again = false }: { again?: boolean } = {}): boolean {
    this.#runs.set(key, { ...run, retryAt: again ? this.#monotonic() + retryMs : Number.POSITIVE_INFINITY });
    const isNews = !this.#told.has(run.reason);
    this.#told.add(run.reason);
    return isNews;
  }

  /** Keys of the runs that are to be left alone now. */
  keys(): RunKey[] {
    const now = this.#monotonic();
    for (const [key, { retryAt }] of this.#runs) if (retryAt <= now) this.#runs.delete(key);
    return [...this.#runs.keys()];
  }

  /** What waits for the machine is tried again at once: it may have changed. */
  retry(): void {
    for (const [key, { retryAt }] of this.#runs) if (Number.isFinite(retryAt)) this.#runs.delete(key);
  }

  /** Everything is tried again, and told again. */
  clear(): void {
    this.#runs.clear();
    this.#told.clear();
  }

  /** By the service's id. */
  forget(runId: string): void {
    for (const [key, { run }] of this.#runs) if (run === runId) this.#runs.delete(key);
  }

  all(): WaitingRun[] {
    return [...this.#runs.values()].map(({ retryAt: _, ...run }) => run);
  }
}
