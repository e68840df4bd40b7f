import { AsyncLocalStorage } from 'node:async_hooks';
import type { TrialKey } from './batches.ts';
import { type Records, Table } from './records.ts';

/** How often a process ended while it ran attempts of a trial. */
export interface CrashCount {
  /** Ends by an unexpected error, which the process noted before it did anything else. */
  errors: number;
  /** Ends without a note: killed, out of memory, machine switched off. */
  deaths: number;
  /** The newest file with details. */
  detail: string | undefined;
}

/** The attempts during which a process ended. When a method returns, its change is on disk. */
export class Crashes extends Table {
  /** The attempt to which the code that runs now belongs. */
  readonly #scope = new AsyncLocalStorage<number>();
  readonly #running = new Set<number>();

  /**
   * Does an attempt's work. {@link escaped} attributes an error that escapes from it to this attempt, even if
   * it escapes later and from a callback.
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
   * Notes an error that escaped. Call it in the handler that caught the error. Blames the attempt to which
   * the error belongs, or all running attempts if that is unknown.
   *
   * @param detail the file with details
   */
  escaped(detail: string): void {
    const own = this.#scope.getStore();
    const attempts = own === undefined ? [...this.#running] : [own];
    const records = this.records;
    records.transaction(() => {
      for (const attempt of attempts) add(records, attempt, 'error', detail);
    });
  }

  of(trial: TrialKey): CrashCount {
    const rows = this.records.select<{ kind: 'error' | 'death'; detail?: string }>(
      `SELECT crashes.kind, crashes.detail FROM crashes JOIN attempts ON attempts.key = crashes.attempt
       WHERE attempts.trial = ? ORDER BY attempts.number`,
      trial,
    );
    const { error: errors = [], death: deaths = [] } = Object.groupBy(rows, ({ kind }) => kind);
    return { errors: errors.length, deaths: deaths.length, detail: errors.at(-1)?.detail };
  }
}

/**
 * Notes, within a transaction, an attempt whose process died. An attempt with a noted error stays unchanged.
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
