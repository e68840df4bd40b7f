import type { BatchKey } from './batches.ts';
import { inCode, type Records } from './records.ts';

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

const trial = "'trial ' || trials.ordinal || ' of run ' || runs.id";
const ofTrials = 'JOIN runs ON runs.key = trials.run AND runs.batch NOT IN (SELECT value FROM json_each(?1))';

const results = `
  SELECT trials.result AS sha256, ${trial} AS what, trials.verdict, trials.record_bytes FROM trials ${ofTrials}
    WHERE trials.result IS NOT NULL
  UNION ALL SELECT attempts.result, 'attempt ' || attempts.number || ' of ' || ${trial}, NULL, NULL
    FROM attempts JOIN trials ON trials.key = attempts.trial ${ofTrials} WHERE attempts.result IS NOT NULL
  UNION ALL SELECT gradings.result, 'a later grading of ' || ${trial}, gradings.verdict, NULL
    FROM gradings JOIN trials ON trials.key = gradings.trial ${ofTrials}`;

/** A record that the ledger's rows refer to: the result of a trial, of an attempt or of a later grading. */
export interface StoredResult extends Reference {
  /** Undefined for an attempt that does not count. */
  verdict: string | undefined;
  /** Bytes of the record, if the ledger has noted them. */
  recordBytes: number | undefined;
}

export function* storedResults(records: Records, except: readonly BatchKey[] = []): Generator<StoredResult> {
  for (const row of records.each(results, JSON.stringify(except))) yield inCode(row);
}

/** The blobs that the ledger's rows refer to directly. */
export function* directReferences(records: Records, except: readonly BatchKey[] = []): Generator<Reference> {
  for (const row of records.each(rows, JSON.stringify(except))) yield inCode(row);
  for (const { sha256, what } of storedResults(records, except)) yield { sha256, what: resultText(what) };
}

/** How a stored result is named, given what it is of. */
export function resultText(of: string): string {
  return of.replace(/^trial/, 'the result of trial');
}

/**
 * Every hash that a result mentions anywhere, because a result may refer to blobs in fields that this version
 * does not know.
 */
export function hashesIn(result: Buffer | undefined): readonly string[] {
  return result?.toString('utf8').match(/[0-9a-f]{64}/g) ?? [];
}
