import { dirname } from 'node:path';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { BatchFacts, Regraded } from '../record/batch-marks.ts';
import type { Elapsed } from '../record/listing.ts';
import { nearest } from '../text/nearest.ts';
import { auditedBatches } from './audits.ts';
import { storeSums, sumColumns, sumsOf } from './batch-sums.ts';
import {
  type BatchRow,
  batchOf,
  runColumns,
  type StoredBatch,
  type StoredRun,
  storedBatches,
} from './batches.ts';
import type { BatchKey, Records } from './records.ts';
import { type StoredTrial, storedTrials } from './trial-rows.ts';

/** A batch with the number of its trials. Withdrawn trials without a result do not count. */
export type ListedBatch = StoredBatch &
  BatchFacts & {
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
  };

const newestFirst = 'ORDER BY started_at DESC, key DESC';

/** All batches of the ledger, newest first; only the one with the key; or only so many. */
export function listBatches(
  records: Records,
  { only, newest }: { only?: BatchKey; newest?: number } = {},
): ListedBatch[] {
  const regraded = regradedTrials(records);
  const audited = auditedBatches(records);
  const chosen = `SELECT * FROM batches WHERE ?1 IS NULL OR key = ?1 ${newestFirst} LIMIT ?2`;
  const which = [only ?? null, newest ?? -1];
  const ended = records.all(
    `SELECT key FROM (${chosen}) WHERE state = 'finished' AND key NOT IN (SELECT batch FROM batch_sums)`,
    ...which,
  );
  storeSums(
    records,
    ended.map(({ key }) => Number(key)),
  );
  /**
   * When its trials ended, by the wall clock and by one that nobody can set, and the runs that were found.
   */
  type Told = { lastAt?: number; isSteady: number; steadyMs?: number; found: number };
  return records
    .select<BatchRow & Omit<ListedBatch, keyof StoredBatch> & Told>(
      `WITH chosen AS MATERIALIZED (${chosen}), sums AS (${sumsOf('SELECT key FROM chosen')})
       SELECT chosen.*, ${sumColumns.join(', ')} FROM chosen JOIN sums ON sums.batch = chosen.key ${newestFirst}`,
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

function elapsedUntil(lastAt: number | undefined, { startedAt }: BatchRow): Elapsed | undefined {
  return lastAt === undefined ? undefined : { ms: Math.max(0, lastAt - startedAt), isAbout: true };
}

/** The trials that were graded again, by their batches. */
function regradedTrials(records: Records): Map<BatchKey, Regraded> {
  const verdictsOf = (graded: string) =>
    ['passed', 'failed']
      .map((verdict) => `'${verdict}', count(*) FILTER (WHERE ${graded}.verdict = '${verdict}')`)
      .join(', ');
  // SQLite takes the other columns from the row with the maximum.
  const rows = records.select<{ batch: BatchKey; regraded: string }>(
    `SELECT runs.batch, json_object('trials', count(*), 'was', json_object(${verdictsOf('trials')}),
       'now', json_object(${verdictsOf('last')})) AS regraded
     FROM (SELECT trial, verdict, max(key) FROM gradings GROUP BY trial) AS last
       JOIN trials ON trials.key = last.trial JOIN runs ON runs.key = trials.run
     GROUP BY runs.batch`,
  );
  return new Map(rows.map(({ batch, regraded }) => [batch, JSON.parse(regraded)]));
}

/** The word for the batch that was started last, wherever a command takes a batch. */
export const lastWord = 'last';

/** The batch that was started last. Throws `BATCH_UNKNOWN` if the ledger has none. */
export function lastBatch(records: Records): StoredBatch {
  const [last] = storedBatches(records, `${newestFirst} LIMIT 1`);
  if (last) return last;
  throw inputError('BATCH_UNKNOWN', `${folderName(records)} has no batch`, {
    hint: 'Run a suite first, or name another folder with --data-folder or OFFSITE_HOME. `offsite service runs` lists the batches of the service.',
  });
}

/**
 * The batch that was started last, of those that have ended; also only of one suite, without one of them.
 * Undefined if there is none.
 *
 * @param asIn a batch of chosen cases counts only if it has all those that these batches have
 */
export function lastEnded(
  records: Records,
  { suite, except, asIn = [] }: { suite?: string; except?: BatchKey; asIn?: readonly BatchKey[] } = {},
): StoredBatch | undefined {
  return storedBatches(
    records,
    `WHERE state = 'finished' AND suite = coalesce(?1, suite) AND key IS NOT ?2
       AND (suite_cases IS NULL OR NOT EXISTS (
         SELECT case_id FROM runs WHERE batch IN (SELECT value FROM json_each(?3))
         EXCEPT SELECT case_id FROM runs WHERE batch = batches.key))
     ${newestFirst} LIMIT 1`,
    suite ?? null,
    except ?? null,
    JSON.stringify(asIn),
  )[0];
}

/**
 * Finds a batch by its id or by the beginning of its id, or the last one by `last`. The `batch_` that ids
 * begin with may be left out. A whole id wins over a beginning. Throws `BATCH_UNKNOWN` if no batch fits, and
 * `BATCH_AMBIGUOUS`, with the candidates, if several do.
 */
export function findBatch(records: Records, reference: string): StoredBatch {
  const fitting = fittingBatches(records, reference);
  if (fitting.length > 1) throw ambiguousBatch(reference, fitting);
  return fitting[0] ?? unknownBatch(records, reference);
}

/**
 * The id of the batch that a reference means, or the reference itself if no batch fits, for a command that
 * asks a service for the batch. Throws `BATCH_AMBIGUOUS` if several batches fit.
 */
export function onlyId(fitting: readonly StoredBatch[], reference: string): string {
  const [id = reference, ...others] = new Set(fitting.map((batch) => batch.id));
  if (others.length > 0) throw ambiguousBatch(reference, fitting);
  return id;
}

/**
 * The batches that a reference could mean, newest first. An id `last`, which a foreign service may give, wins
 * over the word.
 */
export function fittingBatches(records: Records, reference: string): StoredBatch[] {
  if (reference !== lastWord)
    return wholeFirst(storedBatches(records, `${begun} ${newestFirst}`, reference, 'batch_'), reference);
  const named = storedBatches(records, 'WHERE id = ?', reference);
  return named.length > 0 ? named : [lastBatch(records)];
}

/** The runs that a reference could mean by their ids, newest first. */
export function fittingRuns(records: Records, reference: string): StoredRun[] {
  const runs = `SELECT ${runColumns} FROM runs ${begun} ORDER BY key DESC`;
  return wholeFirst(records.select<StoredRun>(runs, reference, 'run_'), reference);
}

/** An id begins with the first parameter, perhaps after the second. */
// `GLOB` and `LIKE` would give some characters of an id a meaning.
const begun = `WHERE ?1 <> '' AND (substr(id, 1, length(?1)) = ?1
  OR substr(id, 1, length(?2 || ?1)) = ?2 || ?1)`;

function wholeFirst<Found extends { id: string }>(found: Found[], reference: string): Found[] {
  const whole = found.filter(({ id }) => isWholeId(id, reference));
  return whole.length > 0 ? whole : found;
}

/** Whether a reference is an id, perhaps without the prefix that ids of its kind have. */
export function isWholeId(id: string, reference: string): boolean {
  return id === reference || bareId(id) === reference;
}

const idPrefix = /^(?:batch|run)_/;

function ambiguousBatch(reference: string, fitting: readonly StoredBatch[]): OffsiteError {
  return ambiguous('BATCH_AMBIGUOUS', `batches fit ${reference}`, fitting.map(describedBatch));
}

export function describedBatch({ id, suite, service, startedAt }: StoredBatch): string {
  return `${id} (${suite}, ${new Date(startedAt).toISOString()}, ${service})`;
}

/** How many candidates an error names. */
const named = 10;

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

/** How many batches a name is compared with. */
const batchesCompared = 500;

/**
 * Throws the error about a name that no batch has, with the one that was probably meant.
 *
 * @param forms what may be written where no batch is named before a colon
 */
export function unknownBatch(records: Records, name: string, forms?: string): never {
  const [before, variant = ''] = name.split(':');
  if (before === '')
    throw inputError('BATCH_UNKNOWN', `"${name}" names no batch before the colon`, {
      hint:
        forms ??
        `Write the id of a batch, or \`last\`: it is taken whole. \`offsite compare\` takes :${variant || 'VARIANT'}.`,
    });
  // The prefix would make all ids similar. People who type an id by hand type its beginning.
  const [prefix = ''] = /^batch_/.exec(name) ?? [];
  const length = Math.max(name.length, shortLength) - prefix.length;
  const ids = records
    .all(`SELECT id FROM batches ${newestFirst} LIMIT ?`, batchesCompared)
    .map(({ id }) => bareId(String(id)).slice(0, length));
  const near = nearest(name.slice(prefix.length), ids);
  const meant = near === undefined ? '' : `; did you mean "${prefix}${near}"?`;
  throw inputError('BATCH_UNKNOWN', `${folderName(records)} has no batch ${name}${meant}`, {
    hint:
      hintOfFile(name) ??
      '`offsite data batches` lists the ids. The beginning of one is enough, and `last` is the last batch. ' +
        'For a batch that ran elsewhere: `offsite service runs BATCH`',
  });
}

/** The data folder that was searched: there may be several. */
export function folderName({ file }: Records): string {
  return `the data folder ${dirname(file)}`;
}

/** Which command takes a file, by its name; undefined if the name is none of a file. */
export function hintOfFile(name: string): string | undefined {
  return takers.find(([ending]) => ending.test(name))?.[1];
}

const takers: readonly (readonly [RegExp, string])[] = [
  [
    /\.ya?ml$/,
    'The file of a suite is for `offsite run` and `offsite check`. Here a batch is named: `offsite data batches` lists them.',
  ],
  [/\.(?:zst|tar)$/, 'A file of evidence is for `offsite audit`.'],
  [/\.eval$/, 'A log of inspect_ai is for `offsite import-log`.'],
  [
    /\.html$/,
    'A page that `offsite export --html FILE` wrote is opened, and compared with another one, in the browser.',
  ],
];

/** The fewest characters that a short id has. */
const shortLength = 8;

/** Returns short forms of the ids of batches, by each of which {@link findBatch} finds its batch. */
export function shortBatchIds(records: Records): (id: string) => string {
  const ids = new Set(records.all('SELECT id FROM batches').map(({ id }) => bareId(String(id))));
  const longest = Math.max(0, ...[...ids].map((id) => id.length));
  let length = shortLength;
  while (length < longest && new Set([...ids].map((id) => id.slice(0, length))).size < ids.size) length++;
  return (id) => shortId(id, length);
}

/** The beginning of the id of a batch or a run, without its prefix unless it would look like an option. */
export function shortId(id: string, length = shortLength): string {
  const bare = bareId(id);
  return bare.startsWith('-') ? id.slice(0, id.length - bare.length + length) : bare.slice(0, length);
}

function bareId(id: string): string {
  return id.replace(idPrefix, '');
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

/** The runs of all batches, those of the newest batch first. */
export function listAllRuns(records: Records): StoredRun[] {
  return records.select(
    `SELECT ${runColumns} FROM runs JOIN batches ON batches.key = runs.batch
     ORDER BY batches.started_at DESC, batches.key DESC, runs.task_index, runs.key`,
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
