import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { Runner } from '../../harness/runner.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformLock, platformService } from '../../ledger/platform.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Platform, PlatformRequest, PlatformTrials, Refusal } from '../../service/platform.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HostEnvironment } from '../../trial/host-environment.ts';
import { watchedLoop } from '../daemon/loops.ts';
import { Metrics } from '../daemon/metrics.ts';
import { observeWork } from '../daemon/observe-work.ts';
import { DeliveryLoop } from '../delivery-loop.ts';
import { Watchdog } from '../loop.ts';
import { type WorkEvent, Worker } from '../worker.ts';
import { claimRun } from './claim-runs.ts';
import { observeHandover } from './observe-handover.ts';
import { PlatformDelivery } from './platform-delivery.ts';
import { recoverStarts } from './recover-starts.ts';
import { refusalOf } from './refusal.ts';
import { turnToServe } from './turn.ts';
import type { Workplace } from './workplace.ts';

/** Attempts of a trial that fails through no fault of the agent's. */
const attempts = 3;

/** Milliseconds between two looks for runs that another process has queued. */
const lookMs = 1_000;

/** Milliseconds until the engine is tried again if there was none. */
const engineMs = 10_000;

/** How long the executor waits at its end for the last results: milliseconds, and failures in a row. */
const grace = { ms: 5_000, failures: 1 };

export interface ExecutorParts {
  config: Config;
  host: HostEnvironment;
  runners: readonly Runner[];
  ledger: Ledger;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  log: Logger;
  /** Connects to the engine. Called again after it threw. */
  open(signal: AbortSignal): Promise<Workplace>;
  /** Told once at the start, and whenever it changes. */
  changed(state: ExecutorState): void;
  /** Receives what the worker does, besides the log. */
  observe?(event: WorkEvent): void;
}

export type ExecutorState =
  | { kind: 'working'; engine: string; concurrency: number }
  /** Another process of the data folder runs the trials; this one takes over when that one ends. */
  | { kind: 'standby' }
  /** No trial can run now, for example because there is no engine. */
  | { kind: 'unable'; reason: string };

/**
 * Runs the trials of platform batches for the service of this process. Of all processes that use a data
 * folder, one at a time does. Everything that must not be lost is in the ledger and in the service's database:
 * after a crash, the next process continues.
 */
export class Executor implements Platform, AsyncDisposable {
  readonly #parts: ExecutorParts;
  readonly #metrics = new Metrics();
  readonly #ending = new AbortController();
  /** Ids of open runs whose trials are in the ledger. */
  readonly #claimed = new Set<string>();
  #workplace: Promise<Workplace> | undefined;
  #running: Promise<void> | undefined;
  /** Makes the executor look for queued runs; does nothing before it works. */
  #look: () => void = () => undefined;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
  }

  async refusal(request: PlatformRequest): Promise<Refusal | undefined> {
    const signal = this.#ending.signal;
    return refusalOf(request, { ...this.#parts, open: () => this.#open() }, signal);
  }

  queued(): void {
    this.#look();
  }

  /** Begins to run the trials of the service, until the executor is disposed. */
  start(platform: PlatformTrials): void {
    this.#running ??= this.#run(platform);
    this.#running.catch((error: unknown) => this.#parts.log.fatal({ err: error }, 'the executor failed'));
  }

  /** Puts the running trials back into the queue, and hands over what is finished. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(
      new OffsiteError('the service was told to stop', { code: 'STOPPED', kind: 'infrastructure' }),
    );
    await this.#running?.catch(() => undefined);
  }

  async #run(platform: PlatformTrials): Promise<void> {
    const { ledger, clock, log, changed } = this.#parts;
    const { signal } = this.#ending;
    const turn = await turnToServe({ ledger, clock, waits: () => changed({ kind: 'standby' }) }, signal);
    if (!turn) return;
    using _turn = turn;
    const interrupted = ledger.queue.interrupt({ service: platformService, lock: platformLock });
    if (interrupted > 0) log.info({ trials: interrupted }, 'interrupted trials start again');
    ledger.reserve.take();
    await using delivery = new DeliveryLoop({
      ...{ ledger, clock, service: platformService },
      delivery: new PlatformDelivery({ outbox: ledger.outbox, trials: ledger.trials, clock, platform }),
      observe: (report, delivered) => {
        observeHandover(report, delivered, log);
        // It may be the run's last trial. If it is not, the run is claimed again, which changes nothing.
        this.#claimed.delete(report.runId);
      },
      note: (reason) => log.warn({ reason }, 'cannot update the outbox'),
    });
    const workplace = await this.#openWhenPossible();
    if (!workplace) return;
    const { engine, revisions } = workplace;
    const { concurrency } = revisions.current;
    changed({ kind: 'working', engine: engine.address, concurrency });
    await this.#work(workplace, platform, delivery);
    await delivery.drain(grace, AbortSignal.timeout(grace.ms)).catch(() => undefined);
  }

  /** Works until the executor ends, and then until no trial is in flight. */
  async #work(workplace: Workplace, platform: PlatformTrials, delivery: DeliveryLoop): Promise<void> {
    const { log, monotonic, clock, observe } = this.#parts;
    const { signal } = this.#ending;
    const metrics = this.#metrics;
    const loops = { log, metrics, clock, watchdog: new Watchdog(monotonic) };
    await using worker = new Worker({
      ...this.#parts,
      ...workplace,
      scope: { service: platformService, lock: platformLock },
      attempts,
      patienceMs: Number.POSITIVE_INFINITY,
      checks: true,
      onFailure: 'pause',
      observe: (event) => {
        observeWork(event, { log, metrics });
        observe?.(event);
        if (event.kind === 'finished') delivery.wake();
      },
      changed: () => work.wake(),
    });
    const work = watchedLoop('work', (ending) => worker.fill(ending), loops);
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
    for (const run of platform.openRuns(this.#claimed)) {
      if (!(await claimRun(run, ledger))) continue;
      this.#claimed.add(run.id);
      const { id, batchId, case: started, trials, ended } = run;
      log.info(
        { batch: batchId, run: id, case: started.id, trials: trials - ended.length },
        'queued a platform run',
      );
      wake();
    }
    return lookMs;
  }

  async #openWhenPossible(): Promise<Workplace | undefined> {
    const { clock, changed } = this.#parts;
    const { signal } = this.#ending;
    for (let told: string | undefined; !signal.aborted; ) {
      try {
        return await this.#open();
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof OffsiteError)) throw error;
        const reason = messageOf(error);
        if (reason !== told) changed({ kind: 'unable', reason });
        told = reason;
      }
      await clock.sleep(engineMs, signal).catch(() => undefined);
    }
    return undefined;
  }

  /** The engine, and what else trials need. After a failure the next call tries again. */
  #open(): Promise<Workplace> {
    this.#workplace ??= this.#parts.open(this.#ending.signal).catch((error: unknown) => {
      this.#workplace = undefined;
      throw error;
    });
    return this.#workplace;
  }
}
