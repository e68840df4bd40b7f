import { z } from 'zod';
import { infrastructureError, inputError, type OffsiteError } from '../base/offsite-error.ts';
import { isDeeper } from '../base/parse-json.ts';
import { foreignJson } from '../bounds/anyone.ts';
import { recordVersion, TrialRecord } from './trial-record.ts';

/**
 * `upgrades[n]` takes a record of version n to n + 1. Records are never rewritten: their blobs are named by
 * their content. So an upgrade must stay for as long as somebody may have a ledger of that version.
 */
const upgrades: readonly ((record: Json) => Json)[] = [
  // The first records had no version, and named the reason of a failure `trouble`.
  (record) => ({ ...record, ...(isObject(record.models) && { models: withFailures(record.models) }) }),
  // Records of version 1 have no fields for the folder of the workspace, for builds and for mapped images.
  (record) => record,
];

type Json = Record<string, unknown>;

/**
 * Reads a stored record, whatever version wrote it.
 *
 * @param value the parsed JSON
 * @param what names the trial in errors
 * @throws `RECORD_NEWER` if a newer program wrote it, `RECORD_UNREADABLE` with the path of what does not fit
 */
export function readRecord(value: unknown, what = 'the record'): TrialRecord {
  const { version = 0 } = isObject(value) ? value : {};
  if (!isObject(value) || typeof version !== 'number')
    throw unreadable(what, 'it is not a record of a trial');
  // An older Offsite did not bound what a harness reports.
  if (isDeeper(value, foreignJson.count.recordLevels))
    throw unreadable(what, `it has more than ${foreignJson.count.recordLevels} levels`);
  if (version > recordVersion) {
    throw inputError(
      'RECORD_NEWER',
      `${what} was written by a newer Offsite: it has version ${version}, and this one reads up to ${recordVersion}`,
      { hint: 'Use the newer Offsite to look at it.' },
    );
  }
  const upgraded = upgrades.slice(version).reduce((record, upgrade) => upgrade(record), value);
  const parsed = TrialRecord.safeParse({ ...upgraded, version: recordVersion });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw unreadable(
    what,
    issue ? `${z.core.toDotPath(issue.path) || 'it'}: ${issue.message}` : 'it does not fit',
  );
}

function unreadable(what: string, why: string): OffsiteError {
  return infrastructureError('RECORD_UNREADABLE', `${what} cannot be read: ${why}`, {
    hint: '`offsite data check` looks for damage.',
  });
}

function withFailures(models: Json): Json {
  return {
    ...models,
    exchanges: each(models.exchanges, renamed),
    connections: each(models.connections, renamed),
  };
}

function renamed({ trouble, ...rest }: Json): Json {
  return trouble === undefined ? rest : { ...rest, failure: trouble };
}

function each(list: unknown, change: (item: Json) => Json): unknown {
  return Array.isArray(list) ? list.map((item) => (isObject(item) ? change(item) : item)) : list;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
