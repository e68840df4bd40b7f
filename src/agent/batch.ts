import pLimit from 'p-limit';
import type { Client } from '../client/client.ts';
import type { Engine } from '../engine/engine.ts';
import type { Ledger, TrialKey } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import {
  memoryOf,
  type PlannedCase,
  type PlannedVariant,
  type SuitePlan,
  startRequest,
} from '../suite/plan.ts';
import { checkSandboxes } from '../trial/base-image.ts';
import type { TrialResult } from '../trial/result.ts';
import type { TrialParts } from '../trial/run-trial.ts';
import { Sandboxes } from '../trial/sandboxes.ts';
import type { Delivered, Delivery } from './delivery.ts';
import { type AttemptEvent, finishTrial } from './finish-trial.ts';
import { resolvePrompt } from './prompt.ts';
import { pullRuns } from './pull.ts';
import { ownTrialSpec } from './trial-spec.ts';

export interface BatchParts extends Omit<TrialParts, 'blobs' | 'sandboxes'> {
  engine: Engine;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  client: Client;
  ledger: Ledger;
  delivery: Delivery;
  /** The service's name in the ledger. */
  service: string;
  /** Trials at a time. */
  concurrency: number;
}

/** One trial of the batch, as its events name it. */
export interface BatchTrial {
  run: BatchRun;
  ordinal: number;
}

export interface BatchRun {
  id: string;
  case: PlannedCase;
  variant: PlannedVariant;
  taskIndex: number;
}

export type BatchEvent =
  | { kind: 'started'; batchId: string; trials: BatchTrial[] }
  | (AttemptEvent & { trial: BatchTrial })
  | { kind: 'report'; trial: BatchTrial; delivered: Delivered };

export interface FinishedTrial extends BatchTrial {
  result: TrialResult;
}

export interface FinishedBatch {
  id: string;
  runs: BatchRun[];
  trials: FinishedTrial[];
}

/**
 * Starts a planned batch at the service, runs its trials, and reports each as soon as it is done. Rejects where the batch cannot be
 * started or `signal` aborts; what was finished is in the ledger then, and its sandboxes are gone.
 */
export async function runBatch(
  plan: SuitePlan,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<FinishedBatch> {
  const { client, ledger, delivery, engine } = parts;
  await checkSandboxes(
    engine,
    plan.variants.map(({ sandbox }) => sandbox),
    signal,
  );
  const prompt = await resolvePrompt(plan, client, signal);
  const request = startRequest(plan, prompt);
  const started = await client.call('evals.start', request, { signal });
  const runs = started.runs.map((run, taskIndex) => batchRun(plan, run, taskIndex));
  const runKeys = ledger.addBatch({
    service: parts.service,
    id: started.id,
    suite: plan.suite.name,
    file: plan.file,
    runs: runs.map((run) => ({
      id: run.id,
      taskIndex: run.taskIndex,
      caseId: run.case.request.id,
      caseName: run.case.request.name,
      variant: run.variant.name,
      memory: memoryOf(run.case),
    })),
  });
  const records = await pullRuns(client, started.runs, signal);

  const queue = runs.flatMap((run) => {
    const record = records.get(run.id);
    const runKey = runKeys.get(run.id);
    if (!record || runKey === undefined) throw new Error(`run ${run.id} was pulled but is not here`);
    const listed = record.trials?.map(({ ordinal }) => ordinal) ?? [];
    // A service may list a trial only once it is recorded.
    const ordinals = listed.length > 0 ? listed : Array.from({ length: plan.trials }, (_, n) => n);
    return ordinals.map((ordinal) => ({
      trial: { run, ordinal },
      spec: ownTrialSpec({ ...run, record, prompt, batchId: started.id, judges: plan.judges }, ordinal),
      key: ledger.addTrial(runKey, ordinal),
    }));
  });
  observe({ kind: 'started', batchId: started.id, trials: queue.map(({ trial }) => trial) });

  await using sandboxes = new Sandboxes(engine, parts.extraCertificates);
  const limit = pLimit(parts.concurrency);
  // A trial only fails to finish where its result cannot be kept, as on a full disk: then no other is begun.
  const halt = new AbortController();
  const finishing = queue.map(async ({ trial, spec, key }, index): Promise<FinishedTrial> => {
    const result = await limit(() => {
      halt.signal.throwIfAborted();
      // The trial that will have this slot next: its sandbox starts while this one runs.
      const next = queue[index + parts.concurrency];
      if (next) sandboxes.startAhead(next.spec, signal);
      return finishTrial(spec, key, { ...parts, sandboxes }, signal, (event) => observe({ ...event, trial }));
    }).catch((error) => {
      halt.abort(error);
      throw error;
    });
    // Out of the trial's slot: a slow service does not hold up the next trial.
    const delivered = await deliverOne(key, ledger, delivery, signal);
    observe({ kind: 'report', trial, delivered });
    return { ...trial, result };
  });
  const settled = await Promise.allSettled(finishing);
  signal.throwIfAborted();
  const failed = settled.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  const trials = settled.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  return { id: started.id, runs, trials };
}

function batchRun(
  plan: SuitePlan,
  started: { id: string; caseId: string; variantIndex: number },
  taskIndex: number,
): BatchRun {
  const planned = plan.cases.find(({ request }) => request.id === started.caseId);
  const variant = plan.variants[started.variantIndex];
  if (!planned || !variant) {
    throw new OffsiteError(
      `the service started a run of case ${started.caseId} on variant ${started.variantIndex}, which was not asked for`,
      { code: 'RUN_UNKNOWN', kind: 'infrastructure' },
    );
  }
  return { id: started.id, case: planned, variant, taskIndex };
}

async function deliverOne(
  key: TrialKey,
  ledger: Ledger,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<Delivered> {
  const report = ledger.outbox.ofTrial(key);
  return report ? delivery.deliver(report, signal) : { kind: 'delivered' };
}
