import { randomBytes } from 'node:crypto';
import { inputError } from '../base/offsite-error.ts';
import { type BatchKey, isOpen, type StoredBatch, storedBatches } from './batches.ts';
import { Table } from './records.ts';
import type { PartKey, StartKey, StartState } from './starts.ts';

type SetKey = number;

/** A suite that needs several start requests: each of its parts becomes a batch. */
export interface StoredSet {
  key: SetKey;
  /** `set_` and 16 hexadecimal digits. It is known in this ledger only. */
  id: string;
  /** The service's name in the ledger. */
  service: string;
  /** Suite name, for people. */
  suite: string;
  file: string | undefined;
  /** Epoch milliseconds. */
  plannedAt: number;
  /** How many parts it has. */
  parts: number;
}

export interface NewSet extends Pick<StoredSet, 'id' | 'service' | 'suite' | 'file'> {
  /** The blob with the planned batch of each part, in the order in which they start. */
  plans: readonly string[];
}

export interface SetPart {
  key: PartKey;
  /** From 1. */
  number: number;
  /** The blob with the planned batch. */
  plan: string;
  /** Its last start; undefined until the service is asked. */
  start: { key: StartKey; state: StartState } | undefined;
  /** The batch that it became. */
  batch: StoredBatch | undefined;
}

/** Which part of a set a batch is. */
export interface PartNumber {
  /** The set's id. */
  id: string;
  /** From 1. */
  number: number;
  of: number;
}

const columns = `sets.key, sets.id, sets.service, sets.suite, sets.file, sets.planned_at,
  (SELECT count(*) FROM set_parts WHERE set_parts.of_set = sets.key) AS parts`;

/**
 * Suites with more cases than a start request takes. All parts are on disk before the first is started, so
 * whatever stops an agent, the ledger knows which parts are left.
 */
export class Sets extends Table {
  add({ id, service, suite, file, plans }: NewSet): StoredSet {
    const records = this.records;
    const plannedAt = records.now();
    return records.transaction(() => {
      const key = records.insert('sets', { id, service, suite, file, plannedAt });
      for (const [index, plan] of plans.entries())
        records.insert('set_parts', { ofSet: key, number: index + 1, plan });
      return { key, id, service, suite, file, plannedAt, parts: plans.length };
    });
  }

  /** The parts, in the order in which they start. */
  parts(set: SetKey): SetPart[] {
    type Row = Pick<SetPart, 'key' | 'number' | 'plan'> & { start?: StartKey; state: StartState };
    const rows = this.records.select<Row>(
      `SELECT set_parts.*, starts.state FROM set_parts LEFT JOIN starts ON starts.key = set_parts.start
       WHERE of_set = ? ORDER BY number`,
      set,
    );
    return rows.map(({ key, number, plan, start, state }) => {
      const [batch] = storedBatches(this.records, 'WHERE start = ?', start ?? null);
      return { key, number, plan, start: start === undefined ? undefined : { key: start, state }, batch };
    });
  }

  /** Notes that a person gave the set up. Its open batches stay as they are. */
  abandon(set: SetKey): void {
    const records = this.records;
    records.run('UPDATE sets SET abandoned_at = ? WHERE key = ?', records.now(), set);
  }

  /**
   * Sets with parts that are not started, or whose planned trials have no result, oldest first. Without those
   * that were abandoned.
   */
  open(): StoredSet[] {
    return this.records.select(
      `SELECT ${columns} FROM sets WHERE abandoned_at IS NULL AND EXISTS (
         SELECT 1 FROM set_parts LEFT JOIN batches ON batches.start = set_parts.start
         WHERE of_set = sets.key AND (batches.key IS NULL OR ${isOpen}))
       ORDER BY key`,
    );
  }

  /** The set that a start or the batch of a start belongs to. */
  ofStart(start: StartKey): StoredSet | undefined {
    const found = `SELECT ${columns} FROM sets WHERE key = (SELECT of_set FROM set_parts WHERE start = ?)`;
    return this.records.select<StoredSet>(found, start)[0];
  }

  /** The set that a batch belongs to. */
  ofBatch(batch: BatchKey): StoredSet | undefined {
    const row = this.records.get('SELECT start FROM batches WHERE key = ? AND start IS NOT NULL', batch);
    return row && this.ofStart(Number(row.start));
  }

  /** The part number of each batch that belongs to a set. */
  partNumbers(): Map<BatchKey, PartNumber> {
    const rows = this.records.select<StoredSet & { batch: BatchKey; number: number }>(
      `SELECT batches.key AS batch, set_parts.number, ${columns} FROM set_parts
       JOIN sets ON sets.key = set_parts.of_set JOIN batches ON batches.start = set_parts.start`,
    );
    return new Map(rows.map(({ batch, id, number, parts: of }) => [batch, { id, number, of }]));
  }

  /**
   * The set whose id begins with a reference; undefined if none does, or if the reference does not begin with
   * `set_`. Throws `SET_AMBIGUOUS`.
   */
  find(reference: string): StoredSet | undefined {
    if (!reference.startsWith('set_')) return undefined;
    const [set, other] = this.records.select<StoredSet>(
      `SELECT ${columns} FROM sets WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2`,
      reference,
    );
    if (!other) return set;
    throw inputError('SET_AMBIGUOUS', `several sets fit ${reference}`, {
      hint: 'Name more characters of the id. `offsite data batches` lists them.',
    });
  }
}

export function newSetId(): string {
  return `set_${randomBytes(8).toString('hex')}`;
}

/** The name of the lock that a process holds while it works on a set. */
export function lockOfSet(id: string): string {
  return id.replace('_', '-');
}
