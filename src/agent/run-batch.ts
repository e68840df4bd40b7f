import type { Client } from '../client/client.ts';
import type { Spent } from '../gateway/budget.ts';
import { platformLock, platformService } from '../ledger/platform.ts';
import type { PartKey } from '../ledger/starts.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import type { SuitePlan } from '../suite/plan.ts';
import type { BuildEvent } from '../trial/prepare/obtain-image.ts';
import type { OpenBatch, Run } from './batch-run.ts';
import type { CircuitEvent } from './circuits.ts';
import { Delivery, type Grace } from './delivery.ts';
import { checkOnEngines, type SomeEngines } from './engines/check.ts';
import { type Delivered, reconcile } from './reconcile.ts';
import type { Sender } from './sender.ts';
import { pullSetups, startBatch, withPrompt } from './start-batch.ts';
import { Worker } from './worker/worker.ts';
import { type AttemptEvent, usualAttempts, type WorkEvent, type WorkerParts } from './worker/worker-parts.ts';

export interface BatchParts
  extends SomeEngines,
    Pick<WorkerParts, 'runners' | 'clock' | 'extraCertificates' | 'ledger' | 'claims' | 'revisions'> {
  client: Client;
  sender: Sender;
  /** The service's name in the ledger. */
  service: string;
  limits?: Partial<BatchLimits> | undefined;
  /** The most cases of a batch of a set; default as many as a start request takes. */
  batchCases?: number | undefined;
  /** Spreads the waits. */
  random?: WorkerParts['random'] | undefined;
}

interface BatchLimits extends Pick<WorkerParts, 'attempts' | 'patienceMs'> {
  /** How long to wait for the last reports. */
  grace: Grace;
}

const defaultLimits: BatchLimits = {
  attempts: usualAttempts,
  patienceMs: 10 * 60_000,
  grace: { ms: 60_000, failures: 1 },
};

/** One trial of the batch, as its events name it. */
export interface BatchTrial {
  run: Run;
  ordinal: number;
}

export type BatchEvent =
  /**
   * `trials` are the trials without a result. `before` is how many trials had a result before a resume.
   * `spent` returns what models have used since this start or resume.
   */
  | { kind: 'started'; batchId: string; trials: BatchTrial[]; before: number; spent(): Spent }
  /** A part of the work that is no trial begins or ends. */
  | { kind: 'step'; title: string; state: 'begins' | 'ends' }
  | { kind: 'build'; build: BuildEvent }
  | (AttemptEvent & { trial: BatchTrial })
  /** The trial no longer runs and is queued again. */
  | { kind: 'put-back'; trial: BatchTrial }
  | { kind: 'report'; trial: BatchTrial; delivered: Delivered }
  | { kind: 'note'; message: string }
  | CircuitEvent;

/**
 * Starts a planned batch at the service, runs its trials, and reports each as soon as it is finished. Rejects
 * if the batch cannot be started, and as {@link workOffBatch} does; `resume` continues the batch then.
 */
export async function runBatch(
  plan: SuitePlan,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<OpenBatch> {
  await checkOnEngines(parts, plan, signal, (build) => observe({ kind: 'build', build }));
  return runPlanned(await withPrompt(plan, parts.client, signal), parts, signal, observe);
}

/**
 * The same for a batch whose prompt is known, and whose sandboxes were checked.
 *
 * @param part the part of a set that becomes the batch
 */
export async function runPlanned(
  plan: SuitePlan,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
  part?: PartKey,
): Promise<OpenBatch> {
  const start = () => startBatch(plan, { ...parts, part }, signal);
  const { batch, lock } = await step('starting the batch', observe, start);
  using _lock = lock;
  // Trials of a platform batch belong to the executor, whose lock the caller holds.
  const owner = parts.service === platformService ? platformLock : lock.name;
  const finished = await workOffBatch(batch, owner, parts, signal, observe);
  lock.remove();
  return finished;
}

/**
 * Queues the trials of a batch, and works until each has a result and is reported. Rejects if a trial cannot
 * be finished or `signal` aborts, and at the end if the service's record of a run cannot be turned into
 * trials. Then the finished trials are in the ledger, the sandboxes are removed, and the batch can be
 * resumed.
 *
 * @param lock the name of the batch's lock, which the caller holds
 */
export async function workOffBatch(
  batch: OpenBatch,
  lock: string,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
  { isResumed = false } = {},
): Promise<OpenBatch> {
  const { ledger, service } = parts;
  const limits = { ...defaultLimits, ...parts.limits };
  ledger.reserve.take();
  await step('getting the setups of the runs', observe, () => pullSetups(batch, parts, signal));
  // The ledger may have been restored from a backup, and the service may have the results of open trials.
  if (isResumed) await readBack(batch, parts, signal, observe);
  const progress = new BatchProgress(batch, observe);
  const all = ledger.queue.ofBatch(batch.key);
  const queued = all.filter(({ result }) => result === undefined);
  await using delivery = new Delivery({
    ...parts,
    batch: batch.key,
    observe: (report, delivered) => progress.reported(report, delivered),
    note: (message) => observe({ kind: 'note', message }),
  });
  {
    await using worker = new Worker({
      ...parts,
      ...limits,
      random: parts.random ?? Math.random,
      scope: { service, lock, batch: batch.key, origin: 'planned' },
      checks: false,
      onFailure: 'stop',
      observe: (event) => {
        progress.worked(event);
        if (event.kind === 'finished') delivery.wake();
      },
    });
    observe({
      kind: 'started',
      batchId: batch.id,
      trials: queued.map((trial) => progress.trialOf(trial)),
      before: all.length - queued.length,
      spent: () => worker.spentBy(batch.key),
    });
    await worker.workOff(signal);
  }
  await step('delivering the last reports', observe, () => delivery.drain(limits.grace, signal));
  progress.throwRefused();
  if (ledger.reserve.spent) {
    const happened = `the disk of ${ledger.dataFolder} was full`;
    observe({ kind: 'note', message: `${happened}: the last results used the space reserved for them` });
  }
  if (ledger.queue.ofBatch(batch.key).some(({ result }) => result === undefined))
    throw new Error(`a trial of ${batch.id} was left without a result`);
  return batch;
}

/** Takes what the service has of a batch and the ledger lacks. */
async function readBack(
  { key }: OpenBatch,
  { ledger, sender: { client } }: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<void> {
  if (!client) return;
  const note = (message: string) => observe({ kind: 'note', message });
  await step('reading what the service has', observe, () =>
    reconcile(ledger.batches.runs(key), { client, ledger, note }, signal, { open: true }),
  );
}

/** Does a part of the work that is no trial, and reports its beginning and its end. */
async function step<Result>(
  title: string,
  observe: (event: BatchEvent) => void,
  work: () => Promise<Result>,
): Promise<Result> {
  observe({ kind: 'step', title, state: 'begins' });
  try {
    return await work();
  } finally {
    observe({ kind: 'step', title, state: 'ends' });
  }
}

/** Reports what happens to a batch, in terms of its plan. */
class BatchProgress {
  readonly #observe: (event: BatchEvent) => void;
  readonly #byKey: Map<number, Run>;
  readonly #byId: Map<string, Run>;
  /** The trials that were reported to the user as run by another agent. */
  readonly #elsewhere = new Set<number>();
  /** The trials that were reported to the user as having a deferred report. */
  readonly #deferred = new Set<number>();
  #refused: Error | undefined;

  constructor({ runs }: OpenBatch, observe: (event: BatchEvent) => void) {
    this.#observe = observe;
    this.#byKey = new Map(runs.map((run) => [run.key, run]));
    this.#byId = new Map(runs.map((run) => [run.id, run]));
  }

  trialOf({ run: key, ordinal }: { run: number; ordinal: number }): BatchTrial {
    const run = this.#byKey.get(key);
    if (!run) throw new Error(`the batch has no run with the key ${key}`);
    return { run, ordinal };
  }

  worked(event: WorkEvent): void {
    switch (event.kind) {
      case 'begun':
      case 'left':
        return;
      case 'put-back':
        this.#observe({ kind: 'put-back', trial: this.trialOf(event.trial) });
        return;
      case 'not-claimed':
        this.#notClaimed(event);
        return;
      case 'build':
      case 'waiting':
      case 'resumed':
        this.#observe(event);
        return;
      case 'not-ready': {
        const { run } = this.trialOf(event.trial);
        const { reason, error = new Error(reason) } = event.why;
        this.#refused ??= error;
        this.#observe({
          kind: 'note',
          message: `${run.case.request.name}: its trials cannot run: ${error.message}`,
        });
        return;
      }
    }
    this.#observe({ ...event, trial: this.trialOf(event.trial) });
  }

  /** Reports, once for each trial, that another agent runs it. */
  #notClaimed({ trial: { key, ...of }, hadBegun, why, reason }: WorkEvent & { kind: 'not-claimed' }): void {
    const trial = this.trialOf(of);
    if (hadBegun) this.#observe({ kind: 'put-back', trial });
    if (this.#elsewhere.has(key) && why !== 'ended') return;
    this.#elsewhere.add(key);
    const name = `${trial.run.case.request.name}, trial ${trial.ordinal}`;
    const message =
      why === 'ended'
        ? `${name}: another Offsite process has run it; its result is at the service`
        : `${name} waits: ${reason}`;
    this.#observe({ kind: 'note', message });
  }

  /** Reports each delivery once when it is deferred, and again when it is delivered or refused for good. */
  reported(report: StoredTrial, delivered: Delivered): void {
    const run = this.#byId.get(report.runId);
    if (!run || delivered.state === 'sent') return;
    if (delivered.state === 'queued') {
      if (this.#deferred.has(report.key)) return;
      this.#deferred.add(report.key);
    }
    this.#observe({ kind: 'report', trial: { run, ordinal: report.ordinal }, delivered });
  }

  /** If the trials of a run could not start, throws the first reason. */
  throwRefused(): void {
    if (this.#refused) throw this.#refused;
  }
}
