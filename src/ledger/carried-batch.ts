import { z } from 'zod';
import { OffsiteError } from '../base/offsite-error.ts';
import { Commit } from '../record/exported-trial.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { BatchKey } from './batches.ts';
import { listAttempts } from './find.ts';
import { fingerprintKey } from './fingerprints.ts';
import type { Ledger } from './ledger.ts';
import type { Records, Row, Value } from './records.ts';

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
  /** `body`: the blob with the report as it was sent. */
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
  ...{ id: z.string(), taskIndex: Whole, caseId: z.string(), caseName: z.string(), variant: z.string() },
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
  ...{ id: z.string(), service: z.string(), suite: z.string(), startedAt: Whole },
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
  const reports = reportsOf(records, key);
  const rows = records.all(
    `SELECT trials.* FROM trials JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ? ORDER BY trials.run, trials.ordinal`,
    key,
  );
  const trials = Map.groupBy(rows, ({ run }) => Number(run));
  const runs = records.all('SELECT * FROM runs WHERE batch = ? ORDER BY task_index, key', key);
  const trialOf = (row: Row): CarriedTrial => {
    const report = reports.get(Number(row.key));
    return present({
      ordinal: Number(row.ordinal),
      result:
        row.result === null
          ? undefined
          : {
              verdict: row.verdict as 'passed',
              record: String(row.result),
              finishedAt: Number(row.finished_at),
            },
      withdrawn: (row.withdrawn ?? undefined) as CarriedTrial['withdrawn'],
      report: report && { body: String(report.body), state: report.state as 'queued' },
      attempts: listAttempts(records, Number(row.key)).map(present),
      gradings: gradings
        .of(Number(row.key))
        .map(({ gradedAt, verdict, result, basis }) => ({ gradedAt, verdict, record: result, basis })),
    });
  };
  return present({
    ...{ id, service, suite, startedAt, answers, suiteCases, commit, plan },
    runs: runs.map((row) =>
      present({
        ...{ id: String(row.id), taskIndex: Number(row.task_index) },
        ...{ caseId: String(row.case_id), caseName: String(row.case_name), variant: String(row.variant) },
        variantIndex: row.variant_index === null ? undefined : Number(row.variant_index),
        variantId: row.variant_id === null ? undefined : String(row.variant_id),
        origin: row.origin === 'found' ? ('found' as const) : ('planned' as const),
        details: JSON.parse(String(row.memory)),
        setup: row.setup === null ? undefined : String(row.setup),
        trials: (trials.get(Number(row.key)) ?? []).map(trialOf),
      }),
    ),
  });
}

/** The reports of a batch, by the key of their trial. */
function reportsOf(records: Records, batch: BatchKey): Map<number, Row> {
  const rows = records.all(
    `SELECT reports.trial, reports.body, reports.state FROM reports
       JOIN trials ON trials.key = reports.trial JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ?`,
    batch,
  );
  return new Map(rows.map((row) => [Number(row.trial), row]));
}

/** Without the members that are undefined, so that it is what JSON gives back. */
function present<Given extends object>(given: Given): Given {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Given;
}

/**
 * Adds a batch of another data folder, in one transaction. Nothing of it will run or be reported here: the
 * batch is finished, its open trials are left to others, and its reports are parked unless they were
 * delivered. The blobs and the archives of workspaces have to be there already; a trial whose record is
 * missing or damaged is added as it is. Throws if the ledger has a batch with its service and id.
 */
export function addCarriedBatch(ledger: Ledger, carried: CarriedBatch): BatchKey {
  const { records, workspaces } = ledger;
  const { id, service, suite, startedAt, answers, suiteCases, commit, plan } = carried;
  return records.transaction(() => {
    const insert = (table: string, row: Record<string, Value | undefined>): number => {
      const names = Object.keys(row);
      const places = names.map(() => '?').join(', ');
      const values = Object.values(row).map((value) => value ?? null);
      return records.run(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places})`, ...values);
    };
    const batch = insert('batches', {
      ...{ service, id, suite, answers, plan, state: 'finished' },
      ...{ started_at: startedAt, suite_cases: suiteCases, commit_id: commit?.id },
      commit_dirty: commit && Number(commit.dirty),
    });
    records.note({ subject: 'batch', key: batch, state: 'finished', detail: 'from another data folder' });
    for (const { trials, ...run } of carried.runs) {
      const runKey = insert('runs', {
        ...{ batch, id: run.id, task_index: run.taskIndex, case_id: run.caseId, case_name: run.caseName },
        ...{ variant: run.variant, variant_index: run.variantIndex, variant_id: run.variantId },
        ...{ origin: run.origin, memory: JSON.stringify(run.details ?? null), setup: run.setup },
        state: 'finished',
      });
      for (const { ordinal, result, withdrawn, report, attempts, gradings } of trials) {
        const { fingerprint, left } = (result && recordIn(ledger, result.record)) ?? {};
        const trial = insert('trials', {
          ...{ run: runKey, ordinal, state: result ? 'finished' : 'queued' },
          withdrawn: withdrawn ?? (result ? undefined : 'elsewhere'),
          ...{ verdict: result?.verdict, result: result?.record, finished_at: result?.finishedAt },
          fingerprint: fingerprintKey(records, fingerprint),
        });
        if (left?.kind !== 'archive' || workspaces.has(left.sha256)) workspaces.keep(trial, left);
        for (const { number, startedAt: started_at, endedAt: ended_at, ending, ...rest } of attempts)
          insert('attempts', {
            ...{ trial, number, started_at, ended_at, ending, result: rest.result },
            cause: rest.cause === undefined ? undefined : JSON.stringify(rest.cause),
          });
        if (report)
          insert('reports', {
            ...{ trial, body: report.body, next_at: 0 },
            state: report.state === 'queued' ? 'parked' : report.state,
          });
        for (const { gradedAt: graded_at, verdict, record, basis } of gradings)
          insert('gradings', { trial, graded_at, verdict, result: record, basis });
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
