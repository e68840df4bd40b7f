import { OffsiteError } from '../offsite-error.ts';
import type { Ledger } from './ledger.ts';
import { artifactReferences, directReferences, mentionedHashes, type Reference } from './references.ts';

export interface CheckedLedger {
  /** What SQLite found wrong; undefined if nothing is. */
  database: string | undefined;
  /** How many blobs were checked. */
  blobs: number;
  /** Blobs whose content has changed. */
  damaged: Reference[];
  /** Blobs that are needed and do not exist. */
  missing: Reference[];
  /** How many blobs nothing needs: a crash leaves some, and so do trials that are still running. */
  orphaned: number;
}

/**
 * Checks the whole ledger: the database's pages and indexes, every blob's content, and that all needed blobs
 * exist.
 */
export async function checkLedger({ records, blobs }: Ledger, signal: AbortSignal): Promise<CheckedLedger> {
  const found: CheckedLedger = { database: undefined, blobs: 0, damaged: [], missing: [], orphaned: 0 };
  try {
    records.check('full');
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    // What a damaged database says about blobs cannot be trusted.
    return { ...found, database: error.message };
  }
  const needed = new Map<string, Reference>();
  for (const reference of directReferences(records)) needed.set(reference.sha256, reference);
  for (const reference of artifactReferences(records, blobs)) {
    if (!needed.has(reference.sha256)) needed.set(reference.sha256, reference);
  }
  const mentioned = new Set(mentionedHashes(records, blobs, []));
  const stored = (await blobs.list()).blobs;
  for (const sha256 of stored) {
    signal.throwIfAborted();
    if (!needed.has(sha256) && !mentioned.has(sha256)) found.orphaned++;
    if ((await blobs.verify(sha256)) === 'damaged') {
      found.damaged.push(needed.get(sha256) ?? { sha256, what: 'a blob that nothing refers to' });
    }
  }
  found.blobs = stored.size;
  found.missing = [...needed.values()].filter(({ sha256 }) => !stored.has(sha256));
  return found;
}
