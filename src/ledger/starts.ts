import { Table } from './records.ts';

export type StartKey = number;

/** A part of a set. */
export type PartKey = number;

/** `asking` until the result of the call is known. */
export type StartState = 'asking' | 'started' | 'refused' | 'unknown';

export interface NewStart {
  /** The service's name in the ledger. */
  service: string;
  /** Suite name, for people. */
  suite: string;
  file: string | undefined;
  /** The blob with the planned batch. */
  plan: string;
  /** The name of the lock that the starting process holds. */
  lock: string;
  /** The part of a set that becomes this batch. */
  part?: PartKey | undefined;
}

/** A call of `evals.start` whose result is not known. */
export interface OpenStart extends Omit<NewStart, 'part'> {
  key: StartKey;
  /** Epoch milliseconds before the call. */
  askedAt: number;
}

/**
 * Intents to start a batch. Each is on disk before the service is asked, because the answer may never arrive.
 */
export class Starts extends Table {
  /** Throws for a part of a set that is started, or may be. */
  add({ part, ...start }: NewStart): OpenStart {
    const records = this.records;
    const askedAt = records.now();
    return records.transaction(() => {
      if (part !== undefined) this.#assertStartable(part);
      const key = records.insert('starts', { ...start, askedAt, state: 'asking' });
      records.note({ subject: 'start', key, state: 'asking' });
      if (part !== undefined) records.run('UPDATE set_parts SET start = ? WHERE key = ?', key, part);
      return { ...start, key, askedAt };
    });
  }

  #assertStartable(part: PartKey): void {
    const ofPart = 'SELECT state FROM starts WHERE key = (SELECT start FROM set_parts WHERE key = ?)';
    const state = this.records.value(ofPart, part) ?? 'refused';
    if (state !== 'refused') throw new Error(`part ${part} of a set has a start: ${state}`);
  }

  /** Notes that the service certainly did not start the batch. */
  refused(key: StartKey, why: string): void {
    this.#end(key, 'refused', why);
  }

  /** Gives a start up: it stays unknown whether the service started the batch. */
  unknown(key: StartKey, why: string): void {
    this.#end(key, 'unknown', why);
  }

  /** The last start of the batch in a file. */
  ofFile(file: string): (OpenStart & { state: StartState }) | undefined {
    const last = 'SELECT * FROM starts WHERE file = ? ORDER BY key DESC LIMIT 1';
    return this.records.select<OpenStart & { state: StartState }>(last, file)[0];
  }

  /** Throws if there is none. */
  byKey(key: StartKey): OpenStart {
    const [start] = this.records.select<OpenStart>('SELECT * FROM starts WHERE key = ?', key);
    if (!start) throw new Error(`the ledger has no start with the key ${key}`);
    return start;
  }

  /** The starts whose result is not known; their process may have died. */
  open(): OpenStart[] {
    return this.records.select("SELECT * FROM starts WHERE state = 'asking' ORDER BY key");
  }

  #end(key: StartKey, state: 'refused' | 'unknown', detail: string): void {
    const records = this.records;
    records.transaction(() => records.become({ subject: 'start', key, state, detail }));
  }
}
