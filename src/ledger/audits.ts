import { auditLevels, type TrialAudit } from '../record/audit.ts';
import type { BatchKey, Records, TrialKey } from './records.ts';

/** Keeps what an audit found. Levels that it did not look at stay as an earlier one left them. */
export function keepAudit(records: Records, trial: TrialKey, audit: TrialAudit): void {
  records.transaction(() => {
    const row = records.get('SELECT audit FROM trials WHERE key = ?', trial);
    const known = [...audit.levels, ...(auditOf(row?.audit)?.levels ?? [])];
    const levels = auditLevels.flatMap((name) => known.find(({ level }) => level === name) ?? []);
    records.run('UPDATE trials SET audit = ? WHERE key = ?', JSON.stringify({ ...audit, levels }), trial);
    records.note({ subject: 'trial', key: trial, state: 'audited' });
  });
}

/** The audits of the trials of a batch that have one. */
export function auditsOf(records: Records, batch: BatchKey): Map<TrialKey, TrialAudit> {
  const rows = records.all(
    `SELECT trials.key, trials.audit FROM trials JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ? AND trials.audit IS NOT NULL`,
    batch,
  );
  return new Map(
    rows.flatMap(({ key, audit }): [TrialKey, TrialAudit][] => {
      const read = auditOf(audit);
      return read ? [[Number(key), read]] : [];
    }),
  );
}

function auditOf(stored: unknown): TrialAudit | undefined {
  return typeof stored === 'string' ? (JSON.parse(stored) as TrialAudit) : undefined;
}
