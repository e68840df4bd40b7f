import {
  type Audited,
  type AuditMark,
  auditLevels,
  auditStanding,
  type TrialAudit,
} from '../record/audit.ts';
import type { BatchKey, Records, TrialKey } from './records.ts';

/** Keeps what an audit found. Levels that it did not look at stay as an earlier one left them. */
export function keepAudit(records: Records, trial: TrialKey, { at, levels }: TrialAudit): void {
  records.transaction(() => {
    const known = [...levels, ...(auditOf(records, trial)?.levels ?? [])];
    const all = auditLevels.flatMap((name) => known.find(({ level }) => level === name) ?? []);
    const kept = { at, standing: auditStanding({ levels: all }), levels: all };
    records.run('UPDATE trials SET audit = ? WHERE key = ?', JSON.stringify(kept), trial);
    records.note({ subject: 'trial', key: trial, state: 'audited', detail: kept.standing });
  });
}

/** What audits of a trial found; undefined if there was none. */
export function auditOf(records: Records, trial: TrialKey): (TrialAudit & AuditMark) | undefined {
  const audit = records.value('SELECT audit FROM trials WHERE key = ?', trial);
  return typeof audit === 'string' ? (JSON.parse(audit) as TrialAudit & AuditMark) : undefined;
}

/** What lists show of the audits of a batch, by trial. */
export function auditMarks(records: Records, batch: BatchKey): Map<TrialKey, AuditMark> {
  const rows = records.select<AuditMark & { key: TrialKey }>(
    `SELECT trials.key, audit ->> 'at' AS at, audit ->> 'standing' AS standing
     FROM trials JOIN runs ON runs.key = trials.run WHERE runs.batch = ? AND audit IS NOT NULL`,
    batch,
  );
  return new Map(rows.map(({ key, ...mark }) => [key, mark]));
}

/** How many trials of each batch have which standing. */
export function auditedBatches(records: Records): Map<BatchKey, Audited> {
  const rows = records.select<{ batch: BatchKey; audited: string }>(
    `SELECT batch, json_group_object(standing, trials) AS audited
     FROM (SELECT runs.batch, audit ->> 'standing' AS standing, count(*) AS trials
       FROM trials JOIN runs ON runs.key = trials.run WHERE audit IS NOT NULL GROUP BY 1, 2)
     GROUP BY batch`,
  );
  return new Map(rows.map(({ batch, audited }) => [batch, JSON.parse(audited)]));
}
