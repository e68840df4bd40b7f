import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { pause } from '../../base/deadline.ts';
import { infrastructureError, isExpected, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { Case } from '../../contract/definition.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformLock, platformService } from '../../ledger/platform.ts';
import type { QueueScope } from '../../ledger/queue.ts';
import type { OpenStart } from '../../ledger/starts.ts';
import type {
  OpenPlatformRun,
  Platform,
  PlatformRefusal,
  PlatformRequest,
  PlatformTrials,
} from '../../service/platform.ts';
import type { Config } from '../../suite/config-file.ts';
import { type SuitePlan, startRequest } from '../../suite/plan.ts';
import type { HostEnvironment } from '../../trial/prepare/environment.ts';
import { readPlan } from '../batch-run.ts';
import { sendAgain, withdrawEnded } from '../daemon/found-run.ts';
import { Metrics } from '../daemon/metrics.ts';
import type { Delivery } from '../delivery.ts';
import { addressesOf } from '../engines/check.ts';
import { mayBeBeingStarted } from '../find-started.ts';
import { Loop, Watchdog } from '../loop.ts';
import { platformSender } from '../sender.ts';
import type { FoundRunDetails } from '../specify.ts';
import { recordBatch } from '../start-batch.ts';
import { beginWork, openDelivery, openWork, watchedLoop } from '../work-loop.ts';
import type { WorkerParts } from '../worker/worker-parts.ts';
import { refusalOf, type Workplace } from './refusal.ts';
import { turnToServe } from './turn.ts';

/** Milliseconds between two looks for runs that another process has queued. */
const lookMs = 1_000;

/** Milliseconds until the executor tries again after it failed, or could not connect to an engine. */
const againMs = 10_000;

/** How long the executor waits at its end for the last results: milliseconds, and failures in a row. */
const grace = { ms: 5_000, failures: 1 };

export const platformScope: QueueScope = { service: platformService, lock: platformLock };

export interface ExecutorParts extends Pick<WorkerParts, 'runners' | 'ledger' | 'clock' | 'random'> {
  config: Config;
  host: HostEnvironment;
  log: Logger;
  /** Connects to the engine. Called again after it threw. */
  open(signal: AbortSignal): Promise<Workplace>;
  /** Called once at the start, and whenever the state changes. */
  changed(state: ExecutorState): void;
  /** Receives what the worker does, besides the log. */
  observe?: WorkerParts['observe'];
}

export type ExecutorState =
  | { kind: 'working'; engine: string; concurrency: number }
  /** Another process of the data folder runs the trials; this one takes over when that one ends. */
  | { kind: 'standby' }
  /** No trial can run now, for example because there is no engine. */
  | { kind: 'unable'; reason: string };

/**
 * Runs the trials of platform batches for the service of this process. Only one process of a data folder at a
 * time does this. Everything that must not be lost is in the ledger and in the service's database: after a
 * crash, the next process continues.
 */
export class Executor implements Platform, AsyncDisposable {
  readonly #parts: ExecutorParts;
  readonly #metrics = new Metrics();
  readonly #ending = new AbortController();
  /** Ids of open runs whose trials are in the ledger. */
  readonly #adopted = new Set<string>();
  #opening: Promise<Workplace> | undefined;
  #running: Promise<void> | undefined;
  /** Makes the executor look for queued runs; does nothing until the executor works. */
  #look: () => void = () => undefined;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
  }

  async refusal(request: PlatformRequest): Promise<PlatformRefusal | undefined> {
    const signal = this.#ending.signal;
    return refusalOf(request, { ...this.#parts, open: () => this.#open() }, signal);
  }

  queued(): void {
    this.#look();
  }

  /** Begins to run the trials of the service, until the executor is disposed. */
  start(platform: PlatformTrials): void {
    this.#running ??= this.#keepRunning(platform);
  }

  /** Puts the running trials back into the queue, and hands over what is finished. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(infrastructureError('STOPPED', 'the service was stopped'));
    await this.#running;
  }

  /** Never rejects. A failure that ends the work, such as a full disk, may be over some time later. */
  #keepRunning(platform: PlatformTrials): Promise<void> {
    const { clock, log, changed } = this.#parts;
    const step = async () => {
      try {
        await this.#run(platform);
        return 0;
      } catch (error) {
        // Reported even while the executor ends: it may have left something behind.
        const expected = isExpected(error);
        log.error({ reason: messageOf(error), err: expected ? undefined : error }, 'the executor failed');
        changed({ kind: 'unable', reason: messageOf(error) });
        return againMs;
      }
    };
    return new Loop({ name: 'executor', clock, step }).run(this.#ending.signal);
  }

  async #run(platform: PlatformTrials): Promise<void> {
    const { ledger, clock, log, changed } = this.#parts;
    const { signal } = this.#ending;
    const turn = await turnToServe({ ledger, clock, waits: () => changed({ kind: 'standby' }) }, signal);
    if (!turn) return;
    using _turn = turn;
    beginWork({ ledger, scope: platformScope, log });
    this.#adopted.clear();
    await using delivery = openDelivery({
      ledger,
      clock,
      log,
      metrics: this.#metrics,
      service: platformService,
      verb: 'record',
      sender: platformSender(ledger, platform),
      observed: ({ runId }) => {
        // If the run has more results to hand over, it is adopted again, which changes nothing.
        if (ledger.queue.openTrials(platformScope, runId).length === 0) this.#adopted.delete(runId);
      },
    });
    const workplace = await this.#openWhenPossible();
    if (!workplace) return;
    const { concurrency } = workplace.revisions.current;
    changed({ kind: 'working', engine: addressesOf(workplace), concurrency });
    await this.#work(workplace, platform, delivery);
    await delivery.drain(grace);
  }

  /** Connects when that is first needed, once. Throws an OffsiteError if trials cannot run here. */
  #open(): Promise<Workplace> {
    this.#opening ??= this.#parts.open(this.#ending.signal).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Tries until it can connect, and says each new reason why not. Undefined if the executor ends. */
  async #openWhenPossible(): Promise<Workplace | undefined> {
    const { clock, changed } = this.#parts;
    const { signal } = this.#ending;
    for (let lastReason: string | undefined; !signal.aborted; await pause(clock, againMs, signal)) {
      try {
        return await this.#open();
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof OffsiteError)) throw error;
        const reason = messageOf(error);
        if (reason !== lastReason) changed({ kind: 'unable', reason });
        lastReason = reason;
      }
    }
    return undefined;
  }

  /** Works until the executor ends, and then until no trial is in flight. */
  async #work(workplace: Workplace, platform: PlatformTrials, delivery: Delivery): Promise<void> {
    const { log, clock, observe } = this.#parts;
    const { signal } = this.#ending;
    const loops = { log, metrics: this.#metrics, clock, watchdog: new Watchdog(clock) };
    const { worker, work } = openWork({
      ...this.#parts,
      ...workplace,
      ...loops,
      scope: platformScope,
      observe: (event) => {
        observe?.(event);
        if (event.kind === 'begun') platform.show(event.trial.runId, event.trial.ordinal, 'running');
        if (event.kind === 'put-back') platform.show(event.trial.runId, event.trial.ordinal, 'queued');
        if (event.kind === 'finished') delivery.wake();
      },
    });
    await using _worker = worker;
    const claim = watchedLoop('claim', () => this.#claim(platform, () => work.wake()), loops);
    this.#look = () => claim.wake();
    const stop = () => worker.stop(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    await Promise.all([claim.run(signal), work.run(signal)]);
    stop();
    await worker.empty();
  }

  /** One look for new runs. Resolves with the milliseconds until the next. */
  async #claim(platform: PlatformTrials, wake: () => void): Promise<number> {
    const { ledger, log } = this.#parts;
    recoverStarts(platform, ledger);
    for (const run of platform.openRuns(this.#adopted)) {
      if (!(await adoptRun(run, ledger))) continue;
      this.#adopted.add(run.id);
      const { id, batchId, case: started, trials, ended } = run;
      log.info(
        { batch: batchId, run: id, case: started.id, trials: trials - ended.length },
        'queued a platform run',
      );
      wake();
    }
    return lookMs;
  }
}

/**
 * Finds the batches of commands that died after the service had started the batch and before the ledger knew
 * its id. The plans of these batches say more than the requests, so the batches must not run without their
 * plans.
 */
export function recoverStarts(platform: Pick<PlatformTrials, 'openRuns'>, ledger: Ledger): void {
  for (const start of ledger.starts.open()) {
    if (start.service !== platformService) continue;
    using lock = ledger.takeLock(start.lock);
    // The command that began this start still runs.
    if (!lock) continue;
    const plan = planOf(start, ledger);
    if (!plan) continue;
    const runs = Map.groupBy(platform.openRuns(), ({ batchId }) => batchId);
    const [found] = [...runs].filter(
      ([id, ofBatch]) => !ledger.batches.has(platformService, id) && fits(ofBatch, plan),
    );
    if (!found) {
      ledger.starts.unknown(start.key, 'the service has no such batch');
      continue;
    }
    const [id, ofBatch] = found;
    const started = inOrder(ofBatch).map((run, index) => {
      return { id: run.id, caseId: run.case.id, variantIndex: index % plan.variants.length };
    });
    recordBatch(plan, start, { id, runs: started }, ledger);
  }
}

/**
 * The plan of a start. If it cannot be read, returns undefined and gives the start up, so that other batches
 * can run.
 */
function planOf(start: OpenStart, ledger: Ledger): SuitePlan | undefined {
  try {
    return readPlan(ledger.blobs.readJson(start.plan));
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    ledger.starts.unknown(start.key, messageOf(error));
    return undefined;
  }
}

/** Whether these are all runs of a batch that was started as planned. */
function fits(runs: readonly OpenPlatformRun[], plan: SuitePlan): boolean {
  const { suite, cases, variants, trials } = startRequest(plan, 'platform');
  if (runs.length !== cases.length * variants.length) return false;
  return inOrder(runs).every((run, index) => {
    const sent = cases[Math.floor(index / variants.length)];
    const { model, credentials } = variants[index % variants.length] ?? {};
    return (
      run.suite.id === suite.id &&
      run.suite.prompt === suite.prompt &&
      run.trials === trials &&
      run.variant.model === model &&
      run.variant.harness === credentials?.harnessConnectionId &&
      run.variant.sandbox === credentials?.sandboxConnectionId &&
      isDeepStrictEqual(run.case, sent)
    );
  });
}

function inOrder(runs: readonly OpenPlatformRun[]): OpenPlatformRun[] {
  return runs.toSorted((one, other) => one.taskIndex - other.taskIndex);
}

/**
 * Puts the trials of a run that have not ended into the ledger's queue, except those that it has already.
 * Resolves with false if the run's batch is just being started by another process; ask again then.
 */
export async function adoptRun(run: OpenPlatformRun, ledger: Ledger): Promise<boolean> {
  const key = ledger.foundRuns.find(platformService, run.batchId, run.id);
  if (key === undefined && mayBeBeingStarted(ledger, platformService)) return false;
  const setup = await ledger.blobs.putJson(run.setup);
  const ended = new Set(run.ended);
  const ordinals = Array.from({ length: run.trials }, (_, ordinal) => ordinal).filter(
    (one) => !ended.has(one),
  );
  if (key !== undefined) {
    // `offsite service start` planned it, or an earlier executor adopted it.
    ledger.queue.add([{ key, setup, variantId: run.variant.id, ordinals }]);
    ledger.foundRuns.adoptOpen(key, ordinals);
    // Ledger and service are two files, and either may be restored from a backup. A trial that the service
    // has is not run again, and a result that it no longer has is handed over again.
    withdrawEnded(ledger, platformScope, run.id, ended);
    sendAgain(ledger, key, 'delivered', ordinals);
    return true;
  }
  const details: FoundRunDetails = { variant: run.variant, definition: withoutTexts(run.case) };
  ledger.foundRuns.adopt({
    service: platformService,
    batchId: run.batchId,
    suite: run.suite.name,
    id: run.id,
    taskIndex: run.taskIndex,
    caseId: run.case.id,
    caseName: run.case.name,
    variant: run.variant.id,
    details,
    setup,
    ordinals,
  });
  return true;
}

/** The setup has the texts, with the variables filled in. */
function withoutTexts({ id, name, variables, user, validator }: Case): Case {
  return {
    id,
    name,
    ...(variables && { variables }),
    ...(user && { user }),
    ...(validator && {
      validator: {
        name: validator.name,
        source: '',
        ...(validator.capture !== undefined && { capture: validator.capture }),
        ...(validator.manifest && { manifest: validator.manifest }),
      },
    }),
  };
}
