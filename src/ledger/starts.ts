import type { Records, Row } from './records.ts';

export type StartKey = number;

/** `asking` while nobody knows what came of it. */
export type StartState = 'asking' | 'started' | 'refused' | 'unknown';

export interface NewStart {
  /** The service's name in the ledger. */
  service: string;
  /** Suite name, for people. */
  suite: string;
  file: string | undefined;
  /** The blob with the planned batch. */
  plan: string;
  /** Name of the lock that the starting process holds. */
  lock: string;
}

/** A call of `evals.start` of which it is not known what came of it. */
export interface OpenStart extends NewStart {
  key: StartKey;
  /** Epoch milliseconds before the call. */
  askedAt: number;
}

/**
 * Intents to start a batch. Each is on disk before the service is asked, since the answer may never arrive.
 */
export class Starts {
  readonly #records: Records;

  constructor(records: Records) {
    this.#records = records;
  }

  add(start: NewStart): OpenStart {
    const records = this.#records;
    const askedAt = records.now();
    return records.transaction(() => {
      const key = records.run(
        "INSERT INTO starts (service, suite, file, plan, lock, asked_at, state) VALUES (?, ?, ?, ?, ?, ?, 'asking')",
        start.service,
        start.suite,
        start.file ?? null,
        start.plan,
        start.lock,
        askedAt,
      );
      records.note({ subject: 'start', key, state: 'asking' });
      return { ...start, key, askedAt };
    });
  }

  /** The service certainly started nothing. */
  refused(key: StartKey, why: string): void {
    this.#end(key, 'refused', why);
  }

  /** Nobody knows: the service could not tell either. It is given up. */
  unknown(key: StartKey, why: string): void {
    this.#end(key, 'unknown', why);
  }

  /** The last intent to start what a file holds. */
  ofFile(file: string): (OpenStart & { state: StartState }) | undefined {
    const row = this.#records.get('SELECT * FROM starts WHERE file = ? ORDER BY key DESC LIMIT 1', file);
    return row && { ...openStart(row), state: row.state as StartState };
  }

  /** Those whose process may have died before it knew. */
  open(): OpenStart[] {
    return this.#records.all("SELECT * FROM starts WHERE state = 'asking' ORDER BY key").map(openStart);
  }

  #end(key: StartKey, state: 'refused' | 'unknown', detail: string): void {
    const records = this.#records;
    records.transaction(() => {
      records.run('UPDATE starts SET state = ? WHERE key = ?', state, key);
      records.note({ subject: 'start', key, state, detail });
    });
  }
}

function openStart(row: Row): OpenStart {
  return {
    key: Number(row.key),
    service: String(row.service),
    suite: String(row.suite),
    file: row.file === null ? undefined : String(row.file),
    plan: String(row.plan),
    lock: String(row.lock),
    askedAt: Number(row.asked_at),
  };
}
