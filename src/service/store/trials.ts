import type { DatabaseSync } from 'node:sqlite';
import { inCode } from '../../ledger/records.ts';
import { pieceSizes } from '../json-response.ts';
import type { EndedTrial } from '../record/distribution.ts';

export interface NewTrial {
  /** The run's key. */
  run: number;
  ordinal: number;
  summary: EndedTrial;
  /** JSON. */
  leftovers: string;
  /** JSON of the trial as run records carry it. */
  record: string;
}

/** Columns of an {@link EndedTrial}. */
const summaryColumns = 'verdict, commands, cost_usd, ended_at';

/** The trials of a run are next to one another in the table. SQL for the range of their possible keys. */
export const keysOfRun = (run: string) => `${run} * 16 AND ${run} * 16 + 15`;
/** The key of a trial. */
export const keyOf = (run: number, ordinal: number) => run * 16 + ordinal;

/** Ended trials. A trial without a row is still queued. */
export function createTrialStore(database: DatabaseSync) {
  const selectTexts = database.prepare('SELECT record, leftovers FROM trials WHERE key = ?');
  const selectSize = database.prepare('SELECT octet_length(record) AS size FROM trials WHERE key = ?');
  const selectSlice = database.prepare(
    'SELECT substr(CAST(record AS BLOB), ?, ?) AS slice FROM trials WHERE key = ?',
  );
  const insert = database.prepare(
    `INSERT INTO trials (key, verdict, commands, cost_usd, ended_at, leftovers, record)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const count = database.prepare(`SELECT count(*) AS ended FROM trials WHERE key BETWEEN ${keysOfRun('?1')}`);
  const selectSummaries = database.prepare(
    `SELECT key, ${summaryColumns} FROM trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
  );

  return {
    /** The stored texts of a trial; undefined if it has not been reported. */
    read(run: number, ordinal: number): Pick<NewTrial, 'record' | 'leftovers'> | undefined {
      const row = selectTexts.get(keyOf(run, ordinal));
      return row && { record: String(row.record), leftovers: String(row.leftovers) };
    },
    add({ run, ordinal, summary, leftovers, record }: NewTrial): void {
      const { verdict, commands, costUsd, endedAt } = summary;
      insert.run(keyOf(run, ordinal), verdict, commands ?? null, costUsd ?? null, endedAt, leftovers, record);
    },
    /** How many trials of a run have ended. */
    count: (run: number): number => Number(count.get(run)?.ended),
    /** By ordinal. Cheap, because it does not read the trials' JSON. */
    summaries(run: number): Map<number, EndedTrial> {
      const rows = selectSummaries.all(run).map((row) => inCode<EndedTrial & { key: number }>(row));
      return new Map(rows.map(({ key, ...summary }) => [key - keyOf(run, 0), summary]));
    },
    /**
     * JSON of one trial, as bytes, because decoding a long text takes four times as long as reading it. In
     * slices, so that a slow reader holds only one in memory. No slices if the trial has not ended.
     */
    *record(run: number, ordinal: number): Generator<Uint8Array> {
      const key = keyOf(run, ordinal);
      const size = Number(selectSize.get(key)?.size ?? 0);
      for (let at = 0; at < size; at += pieceSizes.record)
        yield selectSlice.get(at + 1, pieceSizes.record, key)?.slice as Uint8Array;
    },
  };
}
