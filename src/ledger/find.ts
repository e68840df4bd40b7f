import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { BatchFacts, Regraded } from '../record/batch-marks.ts';
import type { Elapsed } from '../record/listing.ts';
import { nearest } from '../text/nearest.ts';
import { auditedBatches } from './audits.ts';
import { storeSums, sumColumns, sumsOf } from './batch-sums.ts';
import { type BatchRow, batchOf, runColumns, type StoredBatch, type StoredRun } from './batches.ts';
import type { BatchKey, Records } from './records.ts';
import { type StoredTrial, storedTrials } from './trial-rows.ts';

/** A batch with the number of its trials. Withdrawn trials without a result do not count. */
export interface ListedBatch extends StoredBatch, BatchFacts {
  void: number;
  /** Finished trials that no list has shown yet, so that their parts of the sums are missing. */
  unlisted: number;
  /** Milliseconds: the sum over the trials. */
  durationMs: number;
  /** Sums of what the agent's models used; undefined unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** From the start of its first trial to its last result so far; undefined before that. */
  elapsed: Elapsed | undefined;
  answers: BatchFacts['answers'];
  isForeign: boolean;
  suiteCases: number | undefined;
}

/** How many candidates an error names. */
const named = 10;

/** All batches of the ledger, newest first; only the one with the key; or only so many. */
export function listBatches(
  records: Records,
  { only, newest }: { only?: BatchKey; newest?: number } = {},
): ListedBatch[] {
  const regraded = regradedTrials(records);
  const audited = auditedBatches(records);
  const chosen =
    'SELECT * FROM batches WHERE ?1 IS NULL OR key = ?1 ORDER BY started_at DESC, key DESC LIMIT ?2';
  const which = [only ?? null, newest ?? -1];
  const ended = records.select<{ key: BatchKey }>(
    `SELECT key FROM (${chosen}) WHERE state = 'finished' AND key NOT IN (SELECT batch FROM batch_sums)`,
    ...which,
  );
  storeSums(
    records,
    ended.map(({ key }) => key),
  );
  type Counted = BatchRow &
    Omit<ListedBatch, keyof StoredBatch | 'elapsed' | 'regraded' | 'audited' | 'isFound'>;
  return records
    .select<Counted & Told>(
      `WITH chosen AS MATERIALIZED (${chosen}), sums AS (${sumsOf('SELECT key FROM chosen')})
       SELECT chosen.*, ${sumColumns.join(', ')} FROM chosen JOIN sums ON sums.batch = chosen.key
       ORDER BY chosen.started_at DESC, chosen.key DESC`,
      ...which,
    )
    .map(({ lastAt, isSteady, found, steadyMs = 0, ...row }) => ({
      ...row,
      ...batchOf(row),
      isFound: row.plan === undefined && found > 0,
      elapsed: isSteady ? { ms: steadyMs, isAbout: false } : elapsedUntil(lastAt, row),
      regraded: regraded.get(row.key),
      audited: audited.get(row.key),
    }));
}

/** What a batch is told from: when its trials ended, by the wall clock and by one that nobody can set. */
interface Told {
  lastAt?: number;
  isSteady: number;
  steadyMs?: number;
  /** Runs that were found. */
  found: number;
}

function elapsedUntil(lastAt: number | undefined, { startedAt }: BatchRow): Elapsed | undefined {
  return lastAt === undefined ? undefined : { ms: Math.max(0, lastAt - startedAt), isAbout: true };
}

/** The trials that were graded again, by their batches. */
function regradedTrials(records: Records): Map<BatchKey, Regraded> {
  // SQLite takes the other columns from the row with the maximum.
  const rows = records.select<Record<'batch' | 'trials' | `${'was' | 'now'}${'Passed' | 'Failed'}`, number>>(
    `SELECT runs.batch, count(*) AS trials,
       count(*) FILTER (WHERE trials.verdict = 'passed') AS was_passed,
       count(*) FILTER (WHERE trials.verdict = 'failed') AS was_failed,
       count(*) FILTER (WHERE last.verdict = 'passed') AS now_passed,
       count(*) FILTER (WHERE last.verdict = 'failed') AS now_failed
     FROM (SELECT trial, verdict, max(key) FROM gradings GROUP BY trial) AS last
       JOIN trials ON trials.key = last.trial JOIN runs ON runs.key = trials.run
     GROUP BY runs.batch`,
  );
  return new Map(
    rows.map(({ batch, trials, wasPassed, wasFailed, nowPassed, nowFailed }) => [
      batch,
      {
        trials,
        was: { passed: wasPassed, failed: wasFailed },
        now: { passed: nowPassed, failed: nowFailed },
      },
    ]),
  );
}

/** Batches that have ended, also only those of one suite, without one of them. */
export interface EndedBatches {
  ended: true;
  suite?: string;
  except?: BatchKey;
  /** A batch of chosen cases counts only if it has all those that this one has. */
  asIn?: readonly BatchKey[];
}

/** The batch that was started last. Throws `BATCH_UNKNOWN` if the ledger has none. */
export function lastBatch(records: Records): StoredBatch;
/** The batch that was started last, of those that have ended; undefined if none has. */
export function lastBatch(records: Records, which: EndedBatches): StoredBatch | undefined;
export function lastBatch(records: Records, which?: EndedBatches): StoredBatch | undefined {
  const [row] = records.select<BatchRow>(
    `SELECT * FROM batches WHERE (?1 OR state = 'finished') AND suite = coalesce(?2, suite) AND key <> ?3
       AND (suite_cases IS NULL OR NOT EXISTS (
         SELECT case_id FROM runs WHERE batch IN (SELECT value FROM json_each(?4))
         EXCEPT SELECT case_id FROM runs WHERE batch = batches.key))
       ORDER BY started_at DESC, key DESC LIMIT 1`,
    which ? 0 : 1,
    which?.suite ?? null,
    which?.except ?? 0,
    JSON.stringify(which?.asIn ?? []),
  );
  if (row) return batchOf(row);
  if (which) return undefined;
  throw inputError('BATCH_UNKNOWN', 'the data folder has no batch', {
    hint: 'Run a suite first, or name another folder with --data-folder or OFFSITE_HOME. `offsite service runs` lists the batches of the service.',
  });
}

/**
 * Finds a batch by its id or by the beginning of its id, or the last one by `last`. The `batch_` that ids
 * begin with may be left out. A whole id wins over a beginning. Throws `BATCH_UNKNOWN` if no batch fits, and
 * `BATCH_AMBIGUOUS`, with the candidates, if several do.
 */
export function findBatch(records: Records, reference: string): StoredBatch {
  const fitting = fittingBatches(records, reference);
  const [first] = fitting;
  if (first && fitting.length === 1) return first;
  if (first) throw ambiguous('BATCH_AMBIGUOUS', `batches fit ${reference}`, fitting.map(describedBatch));
  throw unknownBatch(records, reference);
}

/**
 * The error about a name that no batch has, with the one that was probably meant.
 *
 * @param forms what may be written where no batch is named before a colon
 */
export function unknownBatch(records: Records, name: string, forms?: string): OffsiteError {
  const [before, variant = ''] = name.split(':');
  if (before === '')
    return inputError('BATCH_UNKNOWN', `"${name}" names no batch before the colon`, {
      hint:
        forms ??
        `Write the id of a batch, or \`last\`: it is taken whole. \`offsite compare\` takes :${variant || 'VARIANT'}.`,
    });
  const ids = records
    .all('SELECT id FROM batches ORDER BY started_at DESC, key DESC LIMIT ?', batchesCompared)
    .map(({ id }) => String(id).replace(idPrefix, ''));
  // The prefix would make all of them similar. People who type an id by hand type its beginning.
  const bare = name.replace(idPrefix, '');
  const prefix = name === bare ? '' : idPrefix;
  const length = Math.max(name.length, suggestedCharacters) - prefix.length;
  const near = nearest(
    bare,
    ids.map((id) => id.slice(0, length)),
  );
  const meant = `${prefix}${near}`;
  return inputError(
    'BATCH_UNKNOWN',
    `the data folder has no batch ${name}${near === undefined ? '' : `; did you mean "${meant}"?`}`,
    {
      hint:
        hintOfFile(name) ??
        '`offsite data batches` lists the ids. The beginning of one is enough, and `last` is the last batch. ' +
          'For a batch that ran elsewhere: `offsite service runs BATCH`',
    },
  );
}

const idPrefix = 'batch_';

/** How many batches a name is compared with. */
const batchesCompared = 500;

/** How many characters of an id are suggested at least. */
const suggestedCharacters = 8;

/** Which command takes a file, by its name; undefined if the name is none of a file. */
export function hintOfFile(name: string): string | undefined {
  const [, word] = Object.entries(takers).find(([ending]) => name.endsWith(ending)) ?? [];
  return word;
}

const ofSuite =
  'The file of a suite is for `offsite run` and `offsite check`. Here a batch is named: `offsite data batches` lists them.';
const ofEvidence = 'A file of evidence is for `offsite audit`.';

const takers: Readonly<Record<string, string>> = {
  '.yaml': ofSuite,
  '.yml': ofSuite,
  '.zst': ofEvidence,
  '.tar': ofEvidence,
  '.eval': 'A log of inspect_ai is for `offsite import-log`.',
  '.html':
    'A page that `offsite export --html FILE` wrote is opened, and compared with another one, in the browser.',
};

/**
 * The id of the batch that a reference means, or the reference itself if no batch fits, for a command that
 * asks a service for the batch. Throws `BATCH_AMBIGUOUS` if several batches fit.
 */
export function onlyId(fitting: readonly StoredBatch[], reference: string): string {
  const [id, ...others] = new Set(fitting.map((batch) => batch.id));
  if (others.length === 0) return id ?? reference;
  throw ambiguous('BATCH_AMBIGUOUS', `batches fit ${reference}`, fitting.map(describedBatch));
}

export function describedBatch({ id, suite, service, startedAt }: StoredBatch): string {
  return `${id} (${suite}, ${new Date(startedAt).toISOString()}, ${service})`;
}

/** The error about a reference that fits several things. */
export function ambiguous(
  code: string,
  what: string,
  candidates: readonly string[],
  hint = 'Write more characters of the id.',
): OffsiteError {
  const listed = candidates.slice(0, named).map((candidate) => `\n${candidate}`);
  const rest = candidates.length > named ? [`\nand ${candidates.length - named} more`] : [];
  return inputError(code, `${candidates.length} ${what}:${[...listed, ...rest].join('')}`, { hint });
}

/** The word for the batch that was started last, wherever a command takes a batch. */
export const lastWord = 'last';

/**
 * The batches that a reference could mean, newest first. An id `last`, which a foreign service may give, wins
 * over the word.
 */
export function fittingBatches(records: Records, reference: string): StoredBatch[] {
  if (reference === lastWord) {
    const named = records.select<BatchRow>('SELECT * FROM batches WHERE id = ?', reference);
    return named.length > 0 ? named.map(batchOf) : [lastBatch(records)];
  }
  const rows = records.select<BatchRow>(
    `SELECT * FROM batches WHERE ${begins('id', 'batch_')} ORDER BY started_at DESC, key DESC`,
    reference,
  );
  return exactFirst(rows.map(batchOf), ['', 'batch_'], reference);
}

/** The runs that a reference could mean by their ids, newest first. */
export function fittingRuns(records: Records, reference: string): StoredRun[] {
  const condition = begins('id', 'run_');
  const rows = records.select<StoredRun>(
    `SELECT ${runColumns} FROM runs WHERE ${condition} ORDER BY key DESC`,
    reference,
  );
  return exactFirst(rows, ['', 'run_'], reference);
}

/** The SQL condition that a column begins with the parameter, with or without the prefix before it. */
function begins(column: string, prefix: string): string {
  // `GLOB` and `LIKE` would give some characters of an id a meaning.
  const after = `substr(${column}, ${prefix.length + 1}, length(?1)) = ?1`;
  return `?1 <> '' AND (substr(${column}, 1, length(?1)) = ?1
    OR (substr(${column}, 1, ${prefix.length}) = '${prefix}' AND ${after}))`;
}

function exactFirst<Found extends { id: string }>(
  found: Found[],
  prefixes: string[],
  reference: string,
): Found[] {
  const exact = found.filter(({ id }) => prefixes.some((prefix) => id === `${prefix}${reference}`));
  return exact.length > 0 ? exact : found;
}

/** The fewest characters that a short id has. */
const shortLength = 8;

/**
 * Returns short forms of the ids of batches, without `batch_`. {@link findBatch} finds a batch by each of
 * them.
 */
export function shortBatchIds(records: Records): (id: string) => string {
  const bare = (id: string) => id.replace(/^batch_/, '');
  const ids = new Set(records.all('SELECT id FROM batches').map(({ id }) => bare(String(id))));
  const longest = Math.max(0, ...[...ids].map((id) => id.length));
  let length = shortLength;
  while (length < longest && new Set([...ids].map((id) => id.slice(0, length))).size < ids.size) length++;
  return (id) => shortBatchId(id, length);
}

/** The beginning of a batch's id, without `batch_` unless it would look like an option. */
export function shortBatchId(id: string, length = shortLength): string {
  return beginningOf(id, /^batch_/, length);
}

/**
 * The beginning of a run's id, without `run_` unless it would look like an option. {@link fittingRuns} finds
 * the run by it.
 */
export function shortRunId(id: string): string {
  return beginningOf(id, /^run_/, shortLength);
}

function beginningOf(id: string, prefix: RegExp, length: number): string {
  const bare = id.replace(prefix, '');
  return bare.startsWith('-') ? id.slice(0, id.length - bare.length + length) : bare.slice(0, length);
}

/**
 * The name of a run's variant, by what the service calls them. A run that was queued again has that of the
 * planned one. Undefined if the batch was not planned here.
 */
export function nameOfVariant(
  records: Records,
  of: { service: string; batchId: string; runId: string; variantId: string | undefined },
): string | undefined {
  const [planned] = records.select<Pick<StoredRun, 'variant'>>(
    `SELECT runs.variant FROM runs JOIN batches ON batches.key = runs.batch
     WHERE batches.service = ?1 AND batches.id = ?2 AND runs.variant_index IS NOT NULL
       AND (runs.id = ?3 OR runs.variant_id = ?4)
     ORDER BY runs.id = ?3 DESC LIMIT 1`,
    of.service,
    of.batchId,
    of.runId,
    of.variantId ?? null,
  );
  return planned?.variant;
}

export function countBatches(records: Records): number {
  return Number(records.value('SELECT count(*) FROM batches'));
}

/** The names of a batch's variants, in the order in which it was started. */
export function variantsOf(records: Records, batch: BatchKey): string[] {
  return records
    .all(
      'SELECT variant FROM runs WHERE batch = ? GROUP BY variant ORDER BY min(task_index), min(key)',
      batch,
    )
    .map(({ variant }) => String(variant));
}

/** The runs of a batch, in the order in which it was started. */
export function listRuns(records: Records, batch: BatchKey): StoredRun[] {
  return records.select(`SELECT ${runColumns} FROM runs WHERE batch = ? ORDER BY task_index, key`, batch);
}

/** The runs of all batches but one, those of the newest batch first. */
export function listOtherRuns(records: Records, except: BatchKey): StoredRun[] {
  return records.select(
    `SELECT ${runColumns} FROM runs JOIN batches ON batches.key = runs.batch WHERE batches.key <> ?
     ORDER BY batches.started_at DESC, batches.key DESC, runs.task_index, runs.key`,
    except,
  );
}

/** Older batches that have a run of the same case and variant: their ids, newest first. */
export function listOlderBatches(records: Records, { batch, caseId, variant }: StoredRun): string[] {
  return records
    .all(
      `SELECT id FROM batches WHERE key IN (SELECT batch FROM runs WHERE case_id = ?1 AND variant = ?2)
         AND (started_at, key) < (SELECT started_at, key FROM batches WHERE key = ?3)
       ORDER BY started_at DESC, key DESC`,
      caseId,
      variant,
      batch,
    )
    .map(({ id }) => String(id));
}

/**
 * The trials of a batch that count, by case, variant and ordinal, including those of runs that were found.
 * Unfinished trials that were withdrawn are left out.
 *
 * @param which `all`: also those that do not count, because the service has another result
 */
export function listTrials(
  records: Records,
  batch: BatchKey,
  which: 'counted' | 'all' = 'counted',
): StoredTrial[] {
  return storedTrials(
    records,
    `WHERE runs.batch = ?1 AND (trials.state = 'finished' OR trials.withdrawn IS NULL)
       AND (?2 OR reports.state IS NOT 'superseded')
     ORDER BY runs.task_index, runs.key, trials.ordinal`,
    batch,
    which === 'all' ? 1 : 0,
  );
}

/** The variants of all batches, by their keys. */
export function variantsOfBatches(records: Records): Map<BatchKey, string[]> {
  const rows = records.select<{ batch: BatchKey; variants: string }>(
    'SELECT batch, json_group_array(DISTINCT variant) AS variants FROM runs GROUP BY batch',
  );
  return new Map(rows.map(({ batch, variants }) => [batch, JSON.parse(variants)]));
}
