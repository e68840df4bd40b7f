import type { BatchKey } from './batches.ts';
import type { BlobStore } from './blobs.ts';
import type { Records } from './records.ts';

export interface Reference {
  sha256: string;
  /** What needs the blob, for people. */
  what: string;
}

/** The blobs that rows refer to. The parameter is a JSON array of the keys of batches to leave out. */
const rows = `
  SELECT plan AS sha256, 'the plan of a start of ' || suite AS what FROM starts
    WHERE NOT EXISTS (SELECT 1 FROM batches WHERE batches.start = starts.key
      AND batches.key IN (SELECT value FROM json_each(?1)))
  UNION ALL SELECT plan, 'the plan of batch ' || number || ' of ' || sets.id
    FROM set_parts JOIN sets ON sets.key = set_parts.of_set
    WHERE NOT EXISTS (SELECT 1 FROM batches WHERE batches.start = set_parts.start
      AND batches.key IN (SELECT value FROM json_each(?1)))
  UNION ALL SELECT plan, 'the plan of batch ' || id FROM batches
    WHERE plan IS NOT NULL AND key NOT IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT setup, 'the setup of run ' || id FROM runs
    WHERE setup IS NOT NULL AND batch NOT IN (SELECT value FROM json_each(?1))
  UNION ALL SELECT reports.body, 'the report of trial ' || trials.ordinal || ' of run ' || runs.id
    FROM reports JOIN trials ON trials.key = reports.trial JOIN runs ON runs.key = trials.run
    WHERE runs.batch NOT IN (SELECT value FROM json_each(?1))`;

const results = `
  SELECT trials.result AS sha256, 'the result of trial ' || trials.ordinal || ' of run ' || runs.id AS what
    FROM trials JOIN runs ON runs.key = trials.run
    WHERE trials.result IS NOT NULL AND runs.batch NOT IN (SELECT value FROM json_each(?1))
  UNION ALL
  SELECT attempts.result,
      'attempt ' || attempts.number || ' of trial ' || trials.ordinal || ' of run ' || runs.id
    FROM attempts JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run
    WHERE attempts.result IS NOT NULL AND runs.batch NOT IN (SELECT value FROM json_each(?1))
  UNION ALL
  SELECT gradings.result, 'a later grading of trial ' || trials.ordinal || ' of run ' || runs.id
    FROM gradings JOIN trials ON trials.key = gradings.trial JOIN runs ON runs.key = trials.run
    WHERE runs.batch NOT IN (SELECT value FROM json_each(?1))`;

/** The blobs that the ledger's rows refer to directly. */
export function* directReferences(records: Records, except: readonly BatchKey[] = []): Generator<Reference> {
  for (const statement of [rows, results]) {
    for (const row of records.each(statement, JSON.stringify(except))) {
      yield { sha256: String(row.sha256), what: String(row.what) };
    }
  }
}

/** The artifacts that results refer to: the files that harnesses made. Skips results that cannot be read. */
export function* artifactReferences(records: Records, blobs: BlobStore): Generator<Reference> {
  for (const { text, what } of resultTexts(records, blobs, [])) {
    const { artifacts = [] } = JSON.parse(text) as { artifacts?: { path: string; sha256: string }[] };
    for (const { path, sha256 } of artifacts) yield { sha256, what: `${path}, an artifact in ${what}` };
  }
}

/**
 * Every hash that a result mentions anywhere, because a result may refer to blobs in fields that this version
 * does not know.
 */
export function* mentionedHashes(
  records: Records,
  blobs: BlobStore,
  except: readonly BatchKey[],
): Generator<string> {
  for (const { text } of resultTexts(records, blobs, except)) {
    for (const [sha256] of text.matchAll(/[0-9a-f]{64}/g)) yield sha256;
  }
}

function* resultTexts(records: Records, blobs: BlobStore, except: readonly BatchKey[]) {
  for (const row of records.each(results, JSON.stringify(except))) {
    const sha256 = String(row.sha256);
    // The check itself reports damaged and missing results.
    const text = blobs.tryRead(sha256)?.toString('utf8');
    if (text !== undefined) yield { text, what: String(row.what) };
  }
}
