import { OffsiteError } from '../offsite-error.ts';
import { batchOf, type StoredBatch } from './batches.ts';
import type { BatchKey, Records, RunKey, TrialKey } from './records.ts';
import type { Verdict } from './trials.ts';

/** A batch with the number of its trials. */
export interface ListedBatch extends StoredBatch {
  passed: number;
  failed: number;
  void: number;
  /** Trials without a result. Withdrawn trials do not count. */
  unfinished: number;
}

/** A trial with the run that it belongs to. */
export interface ListedTrial {
  key: TrialKey;
  run: RunKey;
  /** The service's id of the run. */
  runId: string;
  caseId: string;
  caseName: string;
  /** The planned variant's name; for a run that was found, the service's id of its variant. */
  variant: string;
  ordinal: number;
  state: 'queued' | 'running' | 'finished';
  /** Undefined until the trial is finished. */
  verdict: Verdict | undefined;
  /** The sha256 of the blob with the whole result; undefined until the trial is finished. */
  result: string | undefined;
  /** Epoch milliseconds; undefined until the trial is finished. */
  finishedAt: number | undefined;
}

/** How many candidates an error names. */
const named = 10;

/** All batches of the ledger, newest first. */
export function listBatches(records: Records): ListedBatch[] {
  return records
    .all(
      `SELECT batches.*,
         count(*) FILTER (WHERE trials.verdict = 'passed') AS passed,
         count(*) FILTER (WHERE trials.verdict = 'failed') AS failed,
         count(*) FILTER (WHERE trials.verdict = 'void') AS void,
         count(*) FILTER (WHERE trials.state <> 'finished' AND trials.withdrawn IS NULL) AS unfinished
       FROM batches LEFT JOIN runs ON runs.batch = batches.key LEFT JOIN trials ON trials.run = runs.key
       GROUP BY batches.key ORDER BY batches.started_at DESC, batches.key DESC`,
    )
    .map((row) => ({
      ...batchOf(row),
      passed: Number(row.passed),
      failed: Number(row.failed),
      void: Number(row.void),
      unfinished: Number(row.unfinished),
    }));
}

/** The batch that was started last. Throws `BATCH_UNKNOWN` if the ledger has none. */
export function lastBatch(records: Records): StoredBatch {
  const row = records.get('SELECT * FROM batches ORDER BY started_at DESC, key DESC LIMIT 1');
  if (row) return batchOf(row);
  throw new OffsiteError('the data folder has no batch', {
    code: 'BATCH_UNKNOWN',
    kind: 'input',
    hint: 'Run a suite first, or name another folder with --data-folder or OFFSITE_HOME.',
  });
}

/**
 * Finds a batch by its id or by the beginning of its id. The `batch_` that ids begin with may be left out. A
 * whole id wins over a beginning. Throws `BATCH_UNKNOWN` if no batch fits, and `BATCH_AMBIGUOUS`, with the
 * candidates, if several do.
 */
export function findBatch(records: Records, reference: string): StoredBatch {
  const fitting = candidates(records, reference);
  const [first] = fitting;
  if (first && fitting.length === 1) return first;
  if (!first) {
    throw new OffsiteError(`the data folder has no batch ${reference}`, {
      code: 'BATCH_UNKNOWN',
      kind: 'input',
      hint: 'Name a batch by its id or by the beginning of its id.',
    });
  }
  const listed = fitting.slice(0, named).map(({ id, suite, service, startedAt }) => {
    return `\n${id} (${suite}, ${new Date(startedAt).toISOString()}, ${service})`;
  });
  const rest = fitting.length > named ? [`\nand ${fitting.length - named} more`] : [];
  throw new OffsiteError(`${fitting.length} batches fit ${reference}:${[...listed, ...rest].join('')}`, {
    code: 'BATCH_AMBIGUOUS',
    kind: 'input',
    hint: 'Write more characters of the id.',
  });
}

/** The batches that a reference could mean, newest first. */
function candidates(records: Records, reference: string): StoredBatch[] {
  if (reference === '') return [];
  // `GLOB` and `LIKE` would give some characters of an id a meaning.
  const begins = (column: string) => `substr(${column}, 1, length(?1)) = ?1`;
  const rows = records.all(
    `SELECT * FROM batches
     WHERE ${begins('id')} OR (substr(id, 1, 6) = 'batch_' AND ${begins('substr(id, 7)')})
     ORDER BY started_at DESC, key DESC`,
    reference,
  );
  const fitting = rows.map(batchOf);
  const exact = fitting.filter(({ id }) => id === reference || id === `batch_${reference}`);
  return exact.length > 0 ? exact : fitting;
}

/**
 * The trials of a batch, by case, variant and ordinal, including those of runs that were found. Unfinished
 * trials that were withdrawn are left out.
 */
export function listTrials(records: Records, batch: BatchKey): ListedTrial[] {
  return records
    .all(
      `SELECT trials.*, runs.id AS run_id, runs.case_id, runs.case_name, runs.variant
       FROM trials JOIN runs ON runs.key = trials.run
       WHERE runs.batch = ? AND (trials.state = 'finished' OR trials.withdrawn IS NULL)
       ORDER BY runs.task_index, runs.key, trials.ordinal`,
      batch,
    )
    .map((row) => ({
      key: Number(row.key),
      run: Number(row.run),
      runId: String(row.run_id),
      caseId: String(row.case_id),
      caseName: String(row.case_name),
      variant: String(row.variant),
      ordinal: Number(row.ordinal),
      state: row.state as ListedTrial['state'],
      verdict: row.verdict === null ? undefined : (row.verdict as Verdict),
      result: row.result === null ? undefined : String(row.result),
      finishedAt: row.finished_at === null ? undefined : Number(row.finished_at),
    }));
}
