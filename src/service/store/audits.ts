import type { DatabaseSync } from 'node:sqlite';
import type { Trial } from '../../contract/record.ts';
import { recordPath } from '../../trial/artifacts.ts';
import { digestOfKept } from '../record/digests.ts';
import type { StoredTrial } from '../record/stored-trial.ts';
import { keyOf, keysOfRun } from './trials.ts';

/** How far the evidence of a reported trial holds. */
export interface AuditMark {
  level: string;
  /** Epoch milliseconds. */
  auditedAt: number;
}

/** What evidence of a trial must agree with. */
export interface Committed {
  /** The sha256 of the record that the report names; undefined if it names none. */
  record: string | undefined;
  /** The {@link digestOfKept} of the report. */
  report: string;
  /** The model of the run, and that of the report; undefined if it names none. */
  model: { asked: string; reported: string | undefined };
}

/** The marks of reported trials whose evidence was audited here. */
export interface AuditStore {
  /** What the report of a trial commits to; undefined if it has not been reported. */
  committed(run: number, ordinal: number): Committed | undefined;
  /** A trial keeps the highest level that it had. */
  mark(run: number, ordinal: number, mark: AuditMark): void;
  /** By ordinal. */
  marks(run: number): Map<number, AuditMark>;
}

export function createAuditStore(database: DatabaseSync): AuditStore {
  const select = database.prepare(
    `SELECT record, leftovers, (SELECT model FROM runs WHERE runs.key = trials.key / 16) AS model
     FROM trials WHERE key = ?`,
  );
  // An audit that went less far takes nothing back.
  const put = database.prepare(
    `INSERT INTO audited_trials (key, level, audited_at) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET level = excluded.level, audited_at = excluded.audited_at
     WHERE level != 'regraded' OR excluded.level = 'regraded'`,
  );
  const count = database.prepare(
    `UPDATE runs SET suite_id =
       (SELECT json_extract(suite_name, '$.id') FROM batches WHERE batches.key = runs.batch)
     WHERE key = ? AND suite_id IS NULL`,
  );
  const selectMarks = database.prepare(
    `SELECT key, level, audited_at FROM audited_trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
  );

  return {
    committed(run, ordinal) {
      const row = select.get(keyOf(run, ordinal));
      if (!row) return undefined;
      const texts = { record: String(row.record), leftovers: String(row.leftovers) };
      const { artifacts = [] }: Pick<Trial, 'artifacts'> = JSON.parse(texts.record);
      const { events }: StoredTrial['leftovers'] = JSON.parse(texts.leftovers);
      const reported = events.flatMap((event) => ('model' in event ? String(event.model) : []))[0];
      return {
        record: artifacts.find(({ path }) => path === recordPath)?.sha256,
        model: { asked: String(row.model), reported },
        report: digestOfKept(texts),
      };
    },
    mark(run, ordinal, { level, auditedAt }) {
      put.run(keyOf(run, ordinal), level, auditedAt);
      if (level === 'regraded') count.run(run);
    },
    marks: (run) =>
      new Map(
        selectMarks
          .all(run)
          .map(({ key, level, audited_at }) => [
            Number(key) - keyOf(run, 0),
            { level: String(level), auditedAt: Number(audited_at) },
          ]),
      ),
  };
}
