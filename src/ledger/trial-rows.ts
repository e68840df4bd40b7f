import type { ListedAttempt } from '../record/attempt.ts';
import type { StoredRun } from './batches.ts';
import type { BatchKey, Records, RunKey, TrialKey, Value } from './records.ts';
import type { TrialState } from './trial-states.ts';
import type { Verdict } from './trials.ts';

/**
 * `queued`: waits to be sent. `sent`: the service has answered, and its record was not read since.
 * `delivered`: its record shows the result. `superseded`: it shows another one. `parked`: the service refused
 * the report as its documentation says, so only a change helps.
 */
export type ReportState = 'queued' | 'sent' | 'delivered' | 'parked' | 'superseded';

/** A trial, with what the ledger has of its run, its batch and its report. */
export interface StoredTrial extends Omit<StoredRun, 'key' | 'id' | 'variantId'> {
  key: TrialKey;
  ordinal: number;
  run: RunKey;
  /** The service's ids. */
  runId: string;
  batchId: string;
  /** The service's name in the ledger. */
  service: string;
  /** The name of its suite, for people. */
  suite: string;
  /**
   * `planned` if the batch was started with this run, `found` if a poll found it: its index in its batch is
   * not known then.
   */
  origin: 'planned' | 'found';
  /** What is kept of a found run besides its setup, as JSON. */
  memory: string;
  state: TrialState;
  /** Undefined until the trial is finished. */
  verdict: Verdict | undefined;
  /** The sha256 of the blob with the whole result; undefined until the trial is finished. */
  result: string | undefined;
  /** Epoch milliseconds; undefined until the trial is finished. */
  finishedAt: number | undefined;
  /**
   * The state of its report, which is pending until the service shows its result. Without one, an `open`
   * trial has no result, and `taken` has only what the service showed. Undefined for a trial that was left to
   * somebody else, or whose report was dropped.
   */
  report: ReportState | 'open' | 'taken' | undefined;
  /** Whether the service may have got its report, even if the answer was lost. */
  sent: boolean;
  tries: number;
  /** Epoch milliseconds of the next try. */
  nextAt: number;
  /** When its report got its state, in epoch milliseconds; 0 if that is not known. */
  since: number;
  /** The service's last answer. */
  answer: string | undefined;
  /** The number of the lease under which the trial ran; undefined if it ran without one. */
  lease: number | undefined;
  /** The version of Offsite whose report was refused. */
  refused: string | undefined;
}

/** The SQL for {@link StoredTrial.report}. */
export const reportState = `coalesce(reports.state, CASE
  WHEN trials.state <> 'finished' AND trials.withdrawn IS NULL THEN 'open'
  WHEN trials.state = 'finished' AND trials.withdrawn = 'elsewhere' THEN 'taken' END)`;

const columns = `trials.key, trials.ordinal, trials.run, trials.state, trials.verdict, trials.result,
  trials.finished_at AS finishedAt, runs.batch, runs.id AS runId, runs.task_index AS taskIndex,
  runs.case_id AS caseId, runs.case_name AS caseName, runs.variant, runs.variant_index AS variantIndex, runs.setup,
  runs.origin, runs.memory, batches.id AS batchId, batches.service, batches.suite, ${reportState} AS report,
  reports.sent, reports.tries, reports.next_at AS nextAt, reports.since, reports.answer, reports.lease,
  reports.refused`;

export const fromRuns = `FROM trials JOIN runs ON runs.key = trials.run
  JOIN batches ON batches.key = runs.batch`;

export const fromTrials = `${fromRuns} LEFT JOIN reports ON reports.trial = trials.key`;

/** @param which the SQL after {@link fromTrials}: which trials, in which order */
export function storedTrials(records: Records, which: string, ...values: Value[]): StoredTrial[] {
  const rows = records.all(`SELECT ${columns} ${fromTrials} ${which}`, ...values);
  // In place, because there may be very many.
  for (const row of rows) {
    for (const name in row) if (row[name] === null) row[name] = undefined;
    row.sent = row.sent === 1;
  }
  return rows as unknown as StoredTrial[];
}

/** A trial, even if it is finished; undefined if the ledger has none with the key. */
export function trialByKey(records: Records, key: TrialKey): StoredTrial | undefined {
  return storedTrials(records, 'WHERE trials.key = ?', key)[0];
}

/** A trial of a run; undefined if the ledger does not have it. */
export function trialOf(records: Records, run: RunKey, ordinal: number): StoredTrial | undefined {
  return storedTrials(records, 'WHERE trials.run = ? AND trials.ordinal = ?', run, ordinal)[0];
}

/** The attempts at a trial, in order. */
export function listAttempts(records: Records, trial: TrialKey): ListedAttempt[] {
  const statement = `SELECT ${attemptColumns} FROM attempts WHERE trial = ? ORDER BY number`;
  return records.select<AttemptRow>(statement, trial).map(attemptOf);
}

const attemptColumns =
  'attempts.number, attempts.started_at, attempts.ended_at, attempts.ending, attempts.cause, attempts.result';

/** The cause is JSON. */
type AttemptRow = Omit<ListedAttempt, 'cause'> & { cause?: string };

function attemptOf({ cause, ...row }: AttemptRow): ListedAttempt {
  return { ...row, cause: cause === undefined ? undefined : JSON.parse(cause) };
}

/** What is kept of a found run besides its setup. */
export function detailsOf<Details>({ memory }: Pick<StoredTrial, 'memory'>): Details {
  return JSON.parse(memory);
}

/** The last attempt of each trial of a batch. Its number is how many attempts the trial had. */
export function lastAttempts(records: Records, batch: BatchKey): Map<TrialKey, ListedAttempt> {
  // SQLite takes the other columns from the row with the maximum.
  const rows = records.select<AttemptRow & { trial: TrialKey }>(
    `SELECT ${attemptColumns}, attempts.trial, max(attempts.number) AS number FROM attempts
     JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ? GROUP BY attempts.trial`,
    batch,
  );
  return new Map(rows.map(({ trial, ...row }) => [trial, attemptOf(row)]));
}

/** The key of the journal's last change; 0 if there is none. */
export function lastChange(records: Records): number {
  return Number(records.value('SELECT max(key) FROM changes') ?? 0);
}

/**
 * What changed after a change in the journal: the trials, and the batches of these trials and of all other
 * changes.
 */
export function changedAfter(
  records: Records,
  change: number,
  limit: number,
): { last: number; trials: TrialKey[]; batches: BatchKey[] } {
  const rows = records.all(
    `WITH recent AS (SELECT key, subject, of FROM changes WHERE key > ? ORDER BY key LIMIT ?),
     named AS (
       SELECT recent.key,
         CASE subject WHEN 'attempt' THEN (SELECT trial FROM attempts WHERE attempts.key = of)
           WHEN 'trial' THEN of WHEN 'report' THEN of END AS trial,
         CASE subject WHEN 'run' THEN of END AS run,
         CASE subject WHEN 'batch' THEN of END AS batch
       FROM recent)
     SELECT named.key, named.trial, coalesce(named.batch, runs.batch) AS batch
     FROM named LEFT JOIN trials ON trials.key = named.trial
       LEFT JOIN runs ON runs.key = coalesce(named.run, trials.run)`,
    change,
    limit,
  );
  const keys = (name: string) => [
    ...new Set(rows.flatMap((row) => (row[name] === null ? [] : Number(row[name])))),
  ];
  return {
    last: Math.max(change, ...rows.map((row) => Number(row.key))),
    trials: keys('trial'),
    batches: keys('batch'),
  };
}
