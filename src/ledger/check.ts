import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OffsiteError } from '../base/offsite-error.ts';
import { readRecord } from '../record/read-record.ts';
import { damageOfDatabase } from './database.ts';
import type { Ledger } from './ledger.ts';
import { hasNoBatch } from './prune.ts';
import { directReferences, hashesIn, type Reference, resultText, storedResults } from './references.ts';

export interface CheckedLedger {
  /** What SQLite found wrong; undefined if nothing is. */
  database: string | undefined;
  /** Further databases of the data folder, and what SQLite found wrong in them. */
  beside: { name: string; damage: string | undefined }[];
  /** How many blobs were checked. */
  blobs: number;
  /** Blobs whose content has changed. */
  damaged: Reference[];
  /** Blobs that are needed and do not exist. */
  missing: Reference[];
  /** Trials whose verdict in the ledger is not that of their record. */
  otherVerdicts: { what: string; ledger: string; record: string }[];
  /** Records that are whole, and that this Offsite cannot read: a newer one wrote them, or somebody else. */
  unknown: { what: string; why: string }[];
  /** Archives of workspaces that are read, and those that are damaged or missing. */
  workspaces: number;
  brokenWorkspaces: Reference[];
  /** Whether the ledger has no batch, although there are blobs: it may not be the one they belong to. */
  empty: boolean;
  /** How many blobs nothing needs: a crash leaves some, and so do trials that are still running. */
  orphaned: number;
}

/**
 * Checks the whole ledger: the database's pages and indexes, every blob's content, that all needed blobs
 * exist, that verdicts are those of the records, and the archives of workspaces.
 *
 * @param beside names of further databases of the data folder; those that do not exist are left out
 */
export async function checkLedger(
  { dataFolder, records, blobs, workspaces }: Ledger,
  signal: AbortSignal,
  beside: readonly string[] = [],
): Promise<CheckedLedger> {
  const found: CheckedLedger = {
    database: undefined,
    blobs: 0,
    damaged: [],
    missing: [],
    orphaned: 0,
    otherVerdicts: [],
    unknown: [],
    workspaces: 0,
    brokenWorkspaces: [],
    empty: false,
    beside: beside
      .map((name) => ({ name, file: join(dataFolder, name) }))
      .filter(({ file }) => existsSync(file))
      .map(({ name, file }) => ({ name, damage: damageOfDatabase(file) })),
  };
  try {
    records.check('full');
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    // What a damaged database says about blobs cannot be trusted.
    return { ...found, database: error.message };
  }
  const needed = new Map<string, Reference>();
  for (const reference of directReferences(records)) needed.set(reference.sha256, reference);
  const mentioned = new Set<string>();
  for (const result of storedResults(records)) {
    const content = blobs.tryRead(result.sha256);
    // It is told as damaged or missing.
    if (content === undefined) continue;
    for (const sha256 of hashesIn(content)) mentioned.add(sha256);
    const { what, verdict, recordBytes } = result;
    try {
      const record = JSON.parse(content.toString('utf8'));
      for (const { path, sha256 } of record?.artifacts ?? [])
        if (!needed.has(sha256))
          needed.set(sha256, { sha256, what: `${path}, an artifact in ${resultText(what)}` });
      // What an attempt had found that does not count.
      if (verdict === undefined) continue;
      if (record?.verdict !== verdict) {
        found.otherVerdicts.push({ what, ledger: verdict, record: String(record?.verdict ?? 'none') });
        continue;
      }
      readRecord(record);
      if (recordBytes !== undefined && content.length !== recordBytes)
        found.unknown.push({ what, why: `it is another one: ${content.length} bytes, not ${recordBytes}` });
    } catch (error) {
      if (!(error instanceof OffsiteError || error instanceof SyntaxError)) throw error;
      found.unknown.push({ what, why: error.message });
    }
  }
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
  found.empty = stored.size > 0 && hasNoBatch(records);
  for (const archive of records.all(archives)) {
    signal.throwIfAborted();
    found.workspaces++;
    const [sha256, what] = [String(archive.sha256), String(archive.what)];
    const state = await workspaces.verify(sha256);
    if (state !== 'whole') found.brokenWorkspaces.push({ sha256, what });
  }
  return found;
}

const archives = `
  SELECT workspaces.name AS sha256, 'the workspace of trial ' || trials.ordinal || ' of run ' || runs.id AS what
  FROM workspaces JOIN trials ON trials.key = workspaces.trial JOIN runs ON runs.key = trials.run
  WHERE workspaces.kind = 'archive' AND workspaces.removed_at IS NULL`;
