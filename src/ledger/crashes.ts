import { AsyncLocalStorage } from 'node:async_hooks';
import type { TrialKey } from './batches.ts';
import type { Records } from './records.ts';

/** How often a process came to its end while it ran attempts of a trial. */
export interface CrashCount {
  /** By an error that nobody expected, and that was noted before anything else was done. */
  errors: number;
  /** Without a word: killed, out of memory, a machine switched off. */
  deaths: number;
  /** The last file that says more. */
  detail: string | undefined;
}

/** Which attempts a process came to its end with. What a method has returned from is on disk. */
export class Crashes {
  readonly #records: Records;
  /** Which attempt whatever runs now runs for. */
  readonly #scope = new AsyncLocalStorage<number>();
  readonly #running = new Set<number>();

  constructor(records: Records) {
    this.#records = records;
  }

  /**
   * Does an attempt's work. An error that escapes from it, however much later and from whichever callback, is
   * known to be this attempt's.
   */
  async within<Result>(attempt: number, work: () => Promise<Result>): Promise<Result> {
    this.#running.add(attempt);
    try {
      return await this.#scope.run(attempt, work);
    } finally {
      this.#running.delete(attempt);
    }
  }

  /**
   * Notes an error that escaped, to be called where it arrived: for the attempt that it is of, or for all
   * that run where that cannot be told. `detail` names the file that says more.
   */
  escaped(detail: string): void {
    const own = this.#scope.getStore();
    const attempts = own === undefined ? [...this.#running] : [own];
    const records = this.#records;
    records.transaction(() => {
      for (const attempt of attempts) add(records, attempt, 'error', detail);
    });
  }

  of(trial: TrialKey): CrashCount {
    const rows = this.#records.all(
      `SELECT crashes.kind, crashes.detail FROM crashes JOIN attempts ON attempts.key = crashes.attempt
       WHERE attempts.trial = ? ORDER BY attempts.number`,
      trial,
    );
    const errors = rows.filter(({ kind }) => kind === 'error');
    const detail = errors.at(-1)?.detail;
    return {
      errors: errors.length,
      deaths: rows.length - errors.length,
      detail: detail === undefined || detail === null ? undefined : String(detail),
    };
  }
}

/**
 * Notes, within a transaction, an attempt whose process is gone; one that an error was noted of stays that.
 */
export function noteDeath(records: Records, attempt: number): void {
  add(records, attempt, 'death', null);
}

function add(records: Records, attempt: number, kind: 'error' | 'death', detail: string | null): void {
  records.run(
    'INSERT OR IGNORE INTO crashes (attempt, kind, at, detail) VALUES (?, ?, ?, ?)',
    attempt,
    kind,
    records.now(),
    detail,
  );
}
