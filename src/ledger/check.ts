import { OffsiteError } from '../offsite-error.ts';
import type { Ledger } from './ledger.ts';
import { artifactReferences, directReferences, mentionedHashes, type Reference } from './references.ts';

export interface CheckedLedger {
  /** What SQLite found wrong; undefined where nothing is. */
  database: string | undefined;
  /** Blobs looked at. */
  blobs: number;
  /** Blobs whose content is not what it was. */
  damaged: Reference[];
  /** Blobs that something needs and that are not there. */
  missing: Reference[];
  /** Blobs that nothing needs: a crash, or work that goes on, leaves some. */
  orphaned: number;
}

/**
 * Looks at everything: the database's pages and indexes, every blob's content, and whether all that is needed
 * is there.
 */
export async function checkLedger({ records, blobs }: Ledger, signal: AbortSignal): Promise<CheckedLedger> {
  const found: CheckedLedger = { database: undefined, blobs: 0, damaged: [], missing: [], orphaned: 0 };
  try {
    records.check('full');
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    // What the database says of blobs cannot be trusted then.
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
      found.damaged.push(needed.get(sha256) ?? { sha256, what: 'a blob that nothing names' });
    }
  }
  found.blobs = stored.size;
  found.missing = [...needed.values()].filter(({ sha256 }) => !stored.has(sha256));
  return found;
}
