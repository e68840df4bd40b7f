import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import { OffsiteError } from '../base/offsite-error.ts';
import type { StoredGrading } from '../ledger/gradings.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import type { Verdict } from '../ledger/trials.ts';
import type { KeptWorkspace } from '../ledger/workspaces.ts';
import type { Cause, PhaseName } from '../record/cause.ts';
import { type ThresholdChange, thresholdChanges } from '../record/checks-beside.ts';
import { failuresOf } from '../record/failures.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { CaseEnvironment } from '../suite/environment.ts';
import { environmentContent, type PlannedCase, type SuitePlan } from '../suite/plan.ts';
import {
  obstacleOf,
  placeObstacle,
  type RegradeParts,
  regradeTrial,
  servicesObstacle,
} from '../trial/grade/regrade-trial.ts';
import type { Sandboxes } from '../trial/prepare/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { type OpenBatch, openBatch } from './batch-run.ts';
import { type SpecParts, specify } from './specify.ts';
import { trialSpec } from './trial-spec.ts';

/** A trial that can be graded again. */
export interface RegradeJob {
  trial: StoredTrial;
  kept: KeptWorkspace;
  spec: TrialSpec;
  /** The sha256 of all that says how to grade. */
  basis: string;
  notes: string[];
}

/** A trial that is not graded again. */
export interface LeftOutTrial {
  trial: StoredTrial;
  why: string;
}

export interface RegradeRequest {
  trials: readonly StoredTrial[];
  /** The suite that says how to grade; undefined for the plan of the batch. */
  suite: SuitePlan | undefined;
  /** Leave out trials that have a grading on the same basis. */
  onlyMissing: boolean;
  /** Start new services for a case: what the old ones held is not kept. */
  newServices: boolean;
}

/** Says which trials can be graded again, and how. Starts nothing. */
export async function planRegrade(
  { trials, suite, onlyMissing, newServices }: RegradeRequest,
  parts: Omit<SpecParts, 'batches'>,
): Promise<{ jobs: RegradeJob[]; leftOut: LeftOutTrial[] }> {
  const { ledger } = parts;
  const plans = new Map<number, OpenBatch>();
  const planOf = (batch: number): OpenBatch => {
    const plan = plans.get(batch) ?? openBatch(ledger.batches.byKey(batch), ledger);
    plans.set(batch, plan);
    return plan;
  };
  const jobs: RegradeJob[] = [];
  const leftOut: LeftOutTrial[] = [];
  for (const trial of trials) {
    const job = await jobOf(trial, { suite, newServices }, { ...parts, batches: { planOf } });
    if (typeof job === 'string') leftOut.push({ trial, why: job });
    else if (onlyMissing && ledger.gradings.of(trial.key).some(({ basis }) => basis === job.basis))
      leftOut.push({ trial, why: 'it has this grading already' });
    else jobs.push(job);
  }
  return { jobs, leftOut };
}

/** How to grade a trial again, or why it cannot be. */
async function jobOf(
  trial: StoredTrial,
  { suite, newServices }: Pick<RegradeRequest, 'suite' | 'newServices'>,
  parts: SpecParts,
): Promise<RegradeJob | string> {
  const { ledger } = parts;
  if (trial.result === undefined) return 'it has no result yet';
  const kept = ledger.workspaces.of(trial.key);
  const record = recordFor(ledger, trial);
  if (typeof record === 'string') return record;
  const obstacle = obstacleOf(kept, ledger.workspaces);
  if (obstacle !== undefined) return whyNotKept(record) ?? obstacle;
  if (kept === undefined) throw new Error('nothing kept is an obstacle');
  const specified = await specify(trial, parts, async () => undefined);
  if (specified.kind !== 'ready') return specified.reason;
  const graded = suite ? gradedBy(suite, specified.spec, trial) : { spec: specified.spec, notes: [] };
  if (typeof graded === 'string') return graded;
  const place = placeObstacle(graded.spec, kept) ?? servicesObstacle(graded.spec, newServices);
  if (place !== undefined) return place;
  return { trial, kept, ...graded, basis: basisOf(graded.spec) };
}

function recordFor(ledger: Ledger, { result = '' }: StoredTrial): TrialRecord | string {
  try {
    return readRecord(ledger.blobs.readJson(result));
  } catch (error) {
    if (error instanceof OffsiteError) return error.message;
    throw error;
  }
}

/** Why nothing was kept, if the record of the trial says it. */
function whyNotKept({ left, cause, notRun }: TrialRecord): string | undefined {
  if (left?.kind === 'not-kept') return `what it left was not kept: ${left.why}`;
  if (left !== undefined) return undefined;
  if (notRun) return 'it was not run';
  return cause && cause.kind !== 'agent' && cause.phase !== 'verify' && cause.phase !== 'validate'
    ? `it left nothing to grade: ${cause.kind}, in ${cause.phase}`
    : undefined;
}

/**
 * The trial with today's grading of its case: verify, validator, tests, judges, protected files and their
 * variables and time limits. What its agent worked with stays: environment, prepare, prompt.
 */
function gradedBy(
  suite: SuitePlan,
  spec: TrialSpec,
  { caseId, variant }: StoredTrial,
): { spec: TrialSpec; notes: string[] } | string {
  const planned = suite.cases.find(({ request }) => request.id === caseId);
  if (!planned) return `the suite has no case ${caseId}`;
  const now = suite.variants.find(({ name }) => name === variant) ?? suite.variants[0];
  if (!now) throw new Error('a suite has at least one variant');
  const today = trialSpec(suite, { case: planned, variant: now }, spec);
  const { verify, verifyPlace, validator, tests, testsHosts, judges, solution } = today;
  const own = { verify, verifyPlace, validator, tests, testsHosts, judges, solution };
  const grading = { ...own, protected: today.protected };
  const { timeouts } = spec.sandbox;
  const limits = { verify: now.sandbox.timeouts.verify, validator: now.sandbox.timeouts.validator };
  return {
    spec: {
      ...spec,
      ...grading,
      gradingVariables: today.variables,
      sandbox: { ...spec.sandbox, timeouts: { ...timeouts, ...limits } },
    },
    notes: differences(today, spec, planned),
  };
}

function differences(today: TrialSpec, spec: TrialSpec, { request }: PlannedCase): string[] {
  const differ = (what: string) => `${what} of ${request.id} has changed since; the trial keeps its own`;
  return [
    ...(today.prepare === spec.prepare ? [] : [differ('prepare')]),
    ...(isSameEnvironment(today.environment, spec.environment) ? [] : [differ('the environment')]),
  ];
}

/**
 * The same hash means the same way to grade: what {@link gradedBy} takes of today belongs here too. An
 * optional key only if it is set: null would change the hash of all stored gradings.
 */
function basisOf({ verify, verifyPlace, validator, tests, testsHosts, judges, ...spec }: TrialSpec): string {
  const variables = spec.gradingVariables ?? spec.variables;
  const grading = { verify, verifyPlace, validator, tests, variables, judges, protected: spec.protected };
  const { timeouts } = spec.sandbox;
  const limits = [timeouts.verify, timeouts.validator];
  return createHash('sha256')
    .update(JSON.stringify({ ...grading, limits }))
    .digest('hex');
}

/** A trial with its new grading, which the ledger has. */
export interface RegradedTrial {
  trial: StoredTrial;
  was: RegradedVerdict;
  now: RegradedVerdict;
  /** How the new grading differs from a grading within the trial. */
  notes: string[];
  thresholds: ThresholdChange[];
  grading: StoredGrading;
}

/** A verdict and its reasons, without the outputs, which the ledger has. */
export interface RegradedVerdict {
  verdict: Verdict;
  cause: Cause | undefined;
  /** The checks that failed, one line each. */
  failures: string[];
  durationMs: number;
}

function outcomeOf(result: TrialRecord): RegradedVerdict {
  const { verdict, cause, startedAt, finishedAt } = result;
  return {
    verdict,
    cause: cause && { ...cause, output: undefined },
    failures: failuresOf(result),
    durationMs: finishedAt - startedAt,
  };
}

export interface RegradeBatchParts extends Omit<RegradeParts, 'blobs' | 'workspaces'> {
  ledger: Ledger;
  /** Trials at a time. */
  concurrency: number;
  /** The sandboxes of further engines, for what trials left there. */
  elsewhere?: readonly Sandboxes[] | undefined;
  /** The file of the suite that says how to grade. */
  suite: string | undefined;
}

export type RegradeEvent =
  | { kind: 'phase'; trial: StoredTrial; phase: PhaseName }
  | { kind: 'graded'; regraded: RegradedTrial };

/**
 * Grades trials again. Each grading is stored as soon as it is done, beside the result of its trial; nothing
 * is reported. Rejects if the signal aborts, or a grading cannot be stored.
 */
export async function regradeTrials(
  jobs: readonly RegradeJob[],
  parts: RegradeBatchParts,
  signal: AbortSignal,
  observe: (event: RegradeEvent) => void,
): Promise<RegradedTrial[]> {
  const limit = pLimit(parts.concurrency);
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  const all = jobs.map((job) => limit(() => regrade(job, parts, stopped, observe)));
  try {
    return await Promise.all(all);
  } catch (error) {
    stop.abort(error);
    throw error;
  } finally {
    await Promise.allSettled(all);
  }
}

async function regrade(
  job: RegradeJob,
  parts: RegradeBatchParts,
  signal: AbortSignal,
  observe: (event: RegradeEvent) => void,
): Promise<RegradedTrial> {
  const { trial, basis } = job;
  const { ledger } = parts;
  const { record, now } = await gradeAgain(job, { ...parts, blobs: ledger.blobs }, signal, (phase) =>
    observe({ kind: 'phase', trial, phase }),
  );
  const grading = await ledger.gradings.add(trial.key, {
    verdict: now.verdict,
    record: now,
    basis,
  });
  const regraded = {
    trial,
    was: outcomeOf(record),
    now: outcomeOf(now),
    grading,
    notes: now.regrade?.notes ?? [],
    thresholds: thresholdChanges(record, now),
  };
  observe({ kind: 'graded', regraded });
  return regraded;
}

/** The parts of one grading. What it finds is kept in `blobs`, which need not be those of the ledger. */
export type GradingParts = Omit<RegradeBatchParts, 'concurrency'> & Pick<RegradeParts, 'blobs'>;

/** Grades a trial again, and does not store the grading. Rejects if the signal aborts. */
export async function gradeAgain(
  { trial, kept, spec, notes }: RegradeJob,
  { ledger, suite, elsewhere = [], ...parts }: GradingParts,
  signal: AbortSignal,
  onPhase: (phase: PhaseName) => void,
): Promise<{ record: TrialRecord; now: TrialRecord }> {
  signal.throwIfAborted();
  const recordBlob = trial.result ?? '';
  const record = readRecord(ledger.blobs.readJson(recordBlob));
  const left = { spec, record, recordBlob, kept, suite, notes };
  const sandboxes = elsewhere.find(({ engineName }) => engineName === record.engine) ?? parts.sandboxes;
  const given = { ...parts, sandboxes, workspaces: ledger.workspaces };
  return { record, now: await regradeTrial(left, given, signal, onPhase) };
}

/**
 * Whether two environments are the same for a trial. One of them may come from a stored plan, which has no
 * members without a value.
 */
export function isSameEnvironment(one: CaseEnvironment, other: CaseEnvironment): boolean {
  return JSON.stringify(environmentContent(one)) === JSON.stringify(environmentContent(other));
}
