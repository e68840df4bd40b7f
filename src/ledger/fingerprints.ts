import type { Fingerprint, KnownFingerprint } from '../record/fingerprint.ts';
import type { BatchKey, Records } from './records.ts';

/** The key of a fingerprint, which is stored unless it is known; null without a fingerprint. */
export function fingerprintKey(records: Records, parts: Fingerprint | undefined): number | null {
  if (!parts) return null;
  const text = JSON.stringify(parts);
  records.run('INSERT INTO fingerprints (parts) VALUES (?) ON CONFLICT DO NOTHING', text);
  return Number(records.value('SELECT key FROM fingerprints WHERE parts = ?', text));
}

/** The fingerprints of the trials of a batch that have a verdict, each once for its case and variant. */
export function fingerprintsOf(records: Records, batch: BatchKey): KnownFingerprint[] {
  return records
    .select<Omit<KnownFingerprint, 'parts'> & { parts: string }>(
      `SELECT DISTINCT runs.case_id, runs.variant, fingerprints.parts
       FROM trials JOIN runs ON runs.key = trials.run JOIN fingerprints ON fingerprints.key = trials.fingerprint
       WHERE runs.batch = ? AND trials.verdict IN ('passed', 'failed')`,
      batch,
    )
    .map(({ parts, ...of }) => ({ ...of, parts: JSON.parse(parts) }));
}
