import { z } from 'zod';
import { OffsiteError } from '../base/offsite-error.ts';
import { Commit } from '../record/exported-trial.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { type BatchKey, commitColumns, type RunKey, type TrialKey } from './batches.ts';
import { fingerprintKey } from './fingerprints.ts';
import type { Ledger } from './ledger.ts';
import { listAttempts } from './trial-rows.ts';

/**
 * A batch with all its rows, as it goes from one data folder to another. Contents are named by their sha256.
 * Times are epoch milliseconds.
 */

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits');
const Verdict = z.enum(['passed', 'failed', 'void']);
/** SQLite has no other whole numbers that JavaScript reads. */
const Whole = z.int().nonnegative();

const CarriedTrial = z.strictObject({
  ordinal: Whole,
  result: z
    .strictObject({
      verdict: Verdict,
      /** The blob with the record. */
      record: Sha256,
      finishedAt: Whole,
    })
    .optional(),
  /** Why a trial without a result is not to be run, or whose result it has. */
  withdrawn: z.enum(['elsewhere', 'canceled']).optional(),
  /** `body`: the blob with the report as it was sent. One that was only sent is `queued`. */
  report: z
    .strictObject({ body: Sha256, state: z.enum(['queued', 'delivered', 'parked', 'superseded']) })
    .optional(),
  attempts: z.array(
    z.strictObject({
      number: Whole,
      startedAt: Whole,
      endedAt: Whole.optional(),
      ending: z.string().optional(),
      cause: z.unknown().optional(),
      /** The blob with what an attempt that does not count had found. */
      result: Sha256.optional(),
    }),
  ),
  /** Later gradings, oldest first. */
  gradings: z.array(z.strictObject({ gradedAt: Whole, verdict: Verdict, record: Sha256, basis: z.string() })),
});

const CarriedRun = z.strictObject({
  id: z.string(),
  taskIndex: Whole,
  caseId: z.string(),
  caseName: z.string(),
  variant: z.string(),
  variantIndex: Whole.optional(),
  variantId: z.string().optional(),
  origin: z.enum(['planned', 'found']),
  details: z.unknown(),
  /** The blob with the setup, as the service gave it. */
  setup: Sha256.optional(),
  /** All of them, with a result and without. */
  trials: z.array(CarriedTrial),
});

export const CarriedBatch = z.strictObject({
  id: z.string(),
  service: z.string(),
  suite: z.string(),
  startedAt: Whole,
  answers: z.enum(['live', 'replayed', 'forked']).optional(),
  suiteCases: Whole.optional(),
  commit: Commit.optional(),
  /** The blob with the plan. */
  plan: Sha256.optional(),
  runs: z.array(CarriedRun),
});

export type CarriedTrial = z.infer<typeof CarriedTrial>;
export type CarriedRun = z.infer<typeof CarriedRun>;
export type CarriedBatch = z.infer<typeof CarriedBatch>;

/** A batch of the ledger, with everything that its rows say. */
export function carriedBatch({ batches, records, gradings }: Ledger, key: BatchKey): CarriedBatch {
  const { id, service, suite, startedAt, answers, suiteCases, commit, plan } = batches.byKey(key);
  const rows = records.select<TrialRow>(
    `SELECT trials.key, trials.run, trials.ordinal, trials.verdict, trials.result, trials.finished_at,
       trials.withdrawn, reports.body, iif(reports.state = 'sent', 'queued', reports.state) AS state
     FROM trials JOIN runs ON runs.key = trials.run LEFT JOIN reports ON reports.trial = trials.key
     WHERE runs.batch = ? ORDER BY trials.run, trials.ordinal`,
    key,
  );
  const trials = Map.groupBy(rows, ({ run }) => run);
  const runs = records.select<Omit<CarriedRun, 'details' | 'trials'> & { key: RunKey; memory: string }>(
    `SELECT key, id, task_index, case_id, case_name, variant, variant_index, variant_id, origin, memory, setup
     FROM runs WHERE batch = ? ORDER BY task_index, key`,
    key,
  );
  const trialOf = ({
    key,
    run: _,
    result: record,
    verdict,
    finishedAt,
    body,
    state,
    ...trial
  }: TrialRow) => ({
    ...trial,
    result: record === undefined ? undefined : { verdict, record, finishedAt },
    report: body === undefined ? undefined : { body, state },
    attempts: listAttempts(records, key),
    gradings: gradings
      .of(key)
      .map(({ gradedAt, verdict, result, basis }) => ({ gradedAt, verdict, record: result, basis })),
  });
  const carried: CarriedBatch = {
    id,
    service,
    suite,
    startedAt,
    answers,
    suiteCases,
    commit,
    plan,
    runs: runs.map(({ key, memory, ...run }) => ({
      ...run,
      details: JSON.parse(memory),
      trials: (trials.get(key) ?? []).map(trialOf),
    })),
  };
  // Without what is undefined.
  return JSON.parse(JSON.stringify(carried));
}

/** A trial with its report, if it has one. The columns of a result are there together. */
type TrialRow = NonNullable<CarriedTrial['report']> &
  Pick<CarriedTrial, 'ordinal' | 'withdrawn'> &
  Omit<NonNullable<CarriedTrial['result']>, 'record'> & { key: TrialKey; run: RunKey; result?: string };

/**
 * Adds a batch of another data folder, in one transaction. Nothing of it will run or be reported here: the
 * batch is finished, its open trials are left to others, and its reports are parked unless they were
 * delivered. The blobs and the archives of workspaces have to be there already; a trial whose record is
 * missing or damaged is added as it is. Throws if the ledger has a batch with its service and id.
 */
export function addCarriedBatch(ledger: Ledger, carried: CarriedBatch): BatchKey {
  const { records, workspaces } = ledger;
  const { runs, commit, ...facts } = carried;
  return records.transaction(() => {
    const batch = records.insert('batches', { ...facts, ...commitColumns(commit), state: 'finished' });
    records.note({ subject: 'batch', key: batch, state: 'finished', detail: 'from another data folder' });
    for (const { trials, details, ...run } of runs) {
      const memory = JSON.stringify(details ?? null);
      const runKey = records.insert('runs', { batch, ...run, memory, state: 'finished' });
      for (const { ordinal, result, withdrawn, report, attempts, gradings } of trials) {
        const { fingerprint, left } = (result && recordIn(ledger, result.record)) ?? {};
        const trial = records.insert('trials', {
          run: runKey,
          ordinal,
          state: result ? 'finished' : 'queued',
          withdrawn: withdrawn ?? (result ? undefined : 'elsewhere'),
          verdict: result?.verdict,
          result: result?.record,
          finishedAt: result?.finishedAt,
          fingerprint: fingerprintKey(records, fingerprint),
        });
        if (left?.kind !== 'archive' || workspaces.has(left.sha256)) workspaces.keep(trial, left);
        for (const { cause, ...attempt } of attempts)
          records.insert('attempts', {
            trial,
            ...attempt,
            cause: cause === undefined ? undefined : JSON.stringify(cause),
          });
        if (report)
          records.insert('reports', {
            trial,
            body: report.body,
            nextAt: 0,
            state: report.state === 'queued' ? 'parked' : report.state,
          });
        for (const { record, ...grading } of gradings)
          records.insert('gradings', { trial, ...grading, result: record });
      }
    }
    return batch;
  });
}

function recordIn({ blobs }: Ledger, sha256: string): TrialRecord | undefined {
  try {
    return readRecord(blobs.readJson(sha256));
  } catch (error) {
    if (error instanceof OffsiteError) return undefined;
    throw error;
  }
}
