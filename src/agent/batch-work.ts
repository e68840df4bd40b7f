import type { Client } from '../client/client.ts';
import type { Engine } from '../engine/engine.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PendingReport } from '../ledger/outbox.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { HostEnvironment } from '../trial/host-environment.ts';
import type { TrialResult } from '../trial/result.ts';
import { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialParts } from '../trial/trial-parts.ts';
import { Admission } from './admission.ts';
import type { BatchRun, OpenBatch } from './batch-run.ts';
import { Builds } from './builds.ts';
import type { CircuitEvent } from './circuit.ts';
import { Circuits } from './circuits.ts';
import type { Delivered, Delivery } from './delivery.ts';
import { DeliveryLoop, type Grace } from './delivery-loop.ts';
import { type AttemptEvent, type AttemptParts, finishTrial } from './finish-trial.ts';
import { lightResult } from './light-result.ts';
import { type QueuedTrial, queueTrials } from './queue-trials.ts';
import { requireRoomForResults } from './room.ts';

export interface BatchParts extends Omit<TrialParts, 'blobs' | 'sandboxes'> {
  engine: Engine;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  /** What of the host's environment sandboxes may ask for. */
  host: HostEnvironment;
  client: Client;
  ledger: Ledger;
  delivery: Delivery;
  /** The service's name in the ledger. */
  service: string;
  /** Trials at a time. */
  concurrency: number;
  limits?: Partial<BatchLimits> | undefined;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits. */
  random?: (() => number) | undefined;
}

export interface BatchLimits {
  /** Attempts of a trial that fails through no fault of the agent's. */
  attempts: number;
  /** Milliseconds that trials wait for an engine or a model that is down. */
  patienceMs: number;
  /** How long the last reports are waited for. */
  grace: Grace;
}

const defaultLimits: BatchLimits = {
  attempts: 3,
  patienceMs: 10 * 60_000,
  grace: { ms: 60_000, failures: 1 },
};

/** One trial of the batch, as its events name it. */
export interface BatchTrial {
  run: BatchRun;
  ordinal: number;
}

export type BatchEvent =
  /** `trials` are those that are to be run. */
  | { kind: 'started'; batchId: string; trials: BatchTrial[] }
  | (AttemptEvent & { trial: BatchTrial })
  | { kind: 'report'; trial: BatchTrial; delivered: Delivered }
  | { kind: 'note'; message: string }
  | CircuitEvent;

export interface FinishedTrial extends BatchTrial {
  /** Without its texts, which the ledger has: a batch may have very many. */
  result: TrialResult;
}

export interface FinishedBatch {
  id: string;
  runs: BatchRun[];
  trials: FinishedTrial[];
}

/**
 * Runs the trials of a batch that have no result yet, and reports each as soon as it is done. Rejects where a trial cannot be finished
 * or `signal` aborts, and in the end where no trial can be made of what the service says of a run; what was finished is in the ledger then,
 * its sandboxes are gone, and the batch can be resumed.
 */
export async function workOff(
  batch: OpenBatch,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<FinishedBatch> {
  const { ledger } = parts;
  const limits = { ...defaultLimits, ...parts.limits };
  ledger.reserve.take();
  const { queued, done, refused } = await queueTrials(batch, parts, signal);
  observe({ kind: 'started', batchId: batch.id, trials: queued });
  for (const { run, error } of refused)
    observe({ kind: 'note', message: `${run.case.request.name}: no trial is run: ${error.message}` });
  await using loop = new DeliveryLoop({
    ...parts,
    batch: batch.key,
    observe: reporter(batch, observe),
    note: (message) => observe({ kind: 'note', message }),
  });
  const finished = await finishTrials(queued, { ...parts, limits }, signal, observe, () => loop.wake());
  await loop.drain(limits.grace, signal);
  for (const { error } of refused) throw error;
  if (ledger.reserve.spent) {
    observe({
      kind: 'note',
      message: `the disk of ${ledger.dataFolder} was full: the last results took the room kept for them`,
    });
  }
  const before = done.map(({ run, ordinal, result }): FinishedTrial => {
    return { run, ordinal, result: lightResult(ledger.blobs.readJson(result) as TrialResult) };
  });
  return { id: batch.id, runs: batch.runs, trials: [...before, ...finished] };
}

async function finishTrials(
  queue: readonly QueuedTrial[],
  parts: BatchParts & { limits: BatchLimits },
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
  wake: () => void,
): Promise<FinishedTrial[]> {
  const { ledger, clock, engine, random = Math.random, limits } = parts;
  await using sandboxes = new Sandboxes(engine, parts.extraCertificates, {
    runners: parts.runners,
    host: parts.host,
    clock: parts.clock,
  });
  const admission = new Admission({
    clock,
    concurrency: parts.concurrency,
    requireRoom: () => requireRoomForResults(ledger.dataFolder),
  });
  const circuits = new Circuits({ engine, clock, random, patienceMs: limits.patienceMs, observe });
  const shared: AttemptParts = { ...parts, ...limits, random, sandboxes, admission, circuits };
  const begun = new Set<number>();
  // A trial whose result cannot be kept, or that must not be begun, ends all that have not begun.
  const halt = new AbortController();
  const admitted = AbortSignal.any([signal, halt.signal]);

  const builds = new Builds({ sandboxes, gate: admission.builds, signal: admitted });

  const finishing = queue.map(async ({ key, run, ordinal, spec }, index): Promise<FinishedTrial> => {
    const trial = { run, ordinal };
    try {
      const onBegin = () => {
        // The trial that will have this slot next: its sandbox starts while this one runs.
        const next = queue[index + admission.concurrency];
        if (!next || begun.has(next.key)) return;
        begun.add(next.key);
        sandboxes.startAhead(next.spec, signal);
      };
      await builds.ready(run.id, spec);
      const tell = (event: AttemptEvent) => observe({ ...event, trial });
      const result = await finishTrial(spec, key, shared, { signal, admitted }, tell, onBegin);
      wake();
      return { ...trial, result: lightResult(result) };
    } catch (error) {
      // What waited in vain for engine or model holds up nobody who needs neither.
      if (!(error instanceof OffsiteError && error.code === 'CIRCUIT_OPEN')) halt.abort(error);
      throw error;
    }
  });
  const settled = await Promise.allSettled(finishing);
  signal.throwIfAborted();
  halt.signal.throwIfAborted();
  return settled.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}

/** Tells of each report once when it is put off, and again when it is delivered or refused for good. */
function reporter(batch: OpenBatch, observe: (event: BatchEvent) => void) {
  const runs = new Map<string, BatchRun>(batch.runs.map((run) => [run.id, run]));
  const putOff = new Set<number>();
  return (report: PendingReport, delivered: Delivered) => {
    const run = runs.get(report.runId);
    if (!run) return;
    if (delivered.kind === 'kept' && delivered.state === 'queued') {
      if (putOff.has(report.trial)) return;
      putOff.add(report.trial);
    }
    observe({ kind: 'report', trial: { run, ordinal: report.ordinal }, delivered });
  };
}
