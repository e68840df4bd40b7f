import type { Clock } from '../clock.ts';
import type { Engine } from '../engine/engine.ts';
import type { Runner } from '../harness/runner.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { LeftOut, QueuedTrial, QueueScope } from '../ledger/queue.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { Admission, requireRoomForResults } from './admission.ts';
import { BatchContexts } from './batch-contexts.ts';
import { type CircuitEvent, Circuits } from './circuits.ts';
import type { ConfigRevision, ConfigRevisions } from './config-revision.ts';
import { type AttemptEvent, finishTrial } from './finish-trial.ts';
import { Flight, type Running, type WorkedTrial } from './flight.ts';
import { MachineCheck, type NotReady, specify } from './specify.ts';
import { WaitingRuns } from './waiting-runs.ts';

/**
 * Milliseconds between two looks at the queue when nothing tells of anything new: a run may have waited for
 * its time.
 */
const idleMs = 10_000;

/** Milliseconds without new trials after one could not be finished, as on a full disk. */
const blockedMs = 15_000;

export interface WorkerParts {
  engine: Engine;
  runners: readonly Runner[];
  ledger: Ledger;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  /** What of the queue is the worker's. Its caller holds the lock. */
  scope: QueueScope;
  revisions: ConfigRevisions;
  /** Attempts of a trial that fails through no fault of the agent's. */
  attempts: number;
  /** Milliseconds that trials wait for an engine or a model that is down. */
  patienceMs: number;
  /** Whether each trial is checked against engine and configuration first, since its plan was not. */
  checks: boolean;
  /**
   * What follows where a trial cannot be finished: `pause` puts it back and starts no trial for some seconds,
   * `stop` starts no other.
   */
  onTrouble: 'pause' | 'stop';
  observe(event: WorkEvent): void;
  /** The worker may take more trials. */
  changed?: (() => void) | undefined;
}

export type WorkEvent =
  | { kind: 'begun'; trial: QueuedTrial }
  | (AttemptEvent & { trial: QueuedTrial })
  /** `isNews` unless the same reason was told before. */
  | { kind: 'not-ready'; trial: QueuedTrial; why: NotReady; isNews: boolean }
  /** It could not be finished, and was put back. */
  | { kind: 'put-back'; trial: QueuedTrial; error: unknown; isNews: boolean }
  | CircuitEvent;

/**
 * Runs the trials of its part of the queue, oldest first. Its caller either works off what there is, or calls
 * `fill` again and again until it ends the worker.
 */
export class Worker implements AsyncDisposable {
  /** Runs that cannot be started now. */
  readonly waiting: WaitingRuns;
  readonly #parts: WorkerParts;
  readonly #admission: Admission;
  readonly #circuits: Circuits;
  readonly #batches: BatchContexts;
  readonly #check: MachineCheck;
  readonly #flight: Flight<WorkedTrial>;
  /** Aborted to put back what has not begun. */
  #admitted = new AbortController();
  readonly #stopped = new AbortController();
  #blocked: { reason: string; until: number } | undefined;
  /** What ended the work of a worker that stops at trouble. */
  #trouble: { error: unknown } | undefined;
  /** Resolved and made anew whenever more trials may be taken. */
  #change = Promise.withResolvers<void>();

  constructor(parts: WorkerParts) {
    const { engine, ledger, clock, monotonic, revisions, scope } = parts;
    this.#parts = parts;
    this.waiting = new WaitingRuns(monotonic);
    this.#check = new MachineCheck(engine);
    this.#admission = new Admission({
      clock,
      concurrency: revisions.current.concurrency,
      requireRoom: () => requireRoomForResults(ledger.dataFolder),
    });
    const observe = (event: CircuitEvent) => {
      parts.observe(event);
      this.#changed();
    };
    this.#circuits = new Circuits({ ...parts, observe });
    this.#flight = new Flight((model) => this.#circuits.isOpen(model));
    this.#batches = new BatchContexts({
      ...parts,
      buildGate: this.#admission.builds,
      onBuild: (run) => {
        this.#flight.isBuilding(run);
        this.#changed();
      },
      hasMore: (batch) => ledger.queue.count({ ...scope, batch }) > 0,
    });
  }

  /** Takes trials until there are enough. Resolves with the milliseconds until the next look. */
  async fill(signal: AbortSignal): Promise<number> {
    const { ledger, scope, monotonic } = this.#parts;
    if (this.#blocked && this.#blocked.until > monotonic()) return this.#blocked.until - monotonic();
    this.#blocked = undefined;
    for (;;) {
      const room = this.#flight.room(this.#admission.concurrency);
      if (room <= 0 || this.#isHeld || this.#blocked) return idleMs;
      const next = ledger.queue.next(scope, room, this.#leftOut());
      if (next.length === 0) return idleMs;
      for (const trial of next) {
        // While the one before was looked into, somebody may have said stop.
        if (!this.#isHeld) await this.#take(trial, signal);
      }
    }
  }

  /**
   * Works until nothing is left that can be started. Rejects where the signal aborts, then with what stopped
   * the work, then with why a trial gave up waiting.
   */
  async workOff(signal: AbortSignal): Promise<void> {
    const { batch } = this.#parts.scope;
    using shared = new DisposableStack();
    if (batch !== undefined) {
      // What the trials of the batch share is kept between them.
      this.#batches.take(batch);
      shared.defer(() => this.#batches.release(batch));
    }
    const stop = () => this.stop(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for (;;) {
        const change = this.#change.promise;
        if (!signal.aborted) await this.fill(signal);
        if (this.#flight.size > 0) await change;
        else if (this.#isHeld || this.isWorkedOff) break;
      }
    } catch (error) {
      this.stop(error);
      await this.empty();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
    if (this.#trouble) throw this.#trouble.error;
    for (const error of this.#flight.givenUp) throw error;
  }

  /** Starts no more trials; those that wait for a permit go back to the queue. */
  hold(): void {
    const reason = new OffsiteError('no trial is begun now', { code: 'HELD', kind: 'infrastructure' });
    this.#admitted.abort(reason);
    this.#changed();
  }

  /** Starts trials again after {@link hold}. */
  goOn(): void {
    if (this.#isHeld) this.#admitted = new AbortController();
    this.#changed();
  }

  /**
   * Ends the trials that run: what they found so far is kept with their attempts, and they are queued again.
   */
  stop(reason: unknown): void {
    this.hold();
    this.#stopped.abort(reason);
  }

  /** Takes a run's open trials out of the queue, and ends those that run. Returns how many there were. */
  cancel(runId: string): number {
    const { ledger, scope } = this.#parts;
    const open = ledger.queue.openTrials(scope, runId).map(({ key }) => key);
    ledger.queue.withdraw(open, 'canceled');
    const reason = new OffsiteError('the run was canceled', { code: 'CANCELED', kind: 'infrastructure' });
    for (const key of open) this.#flight.get(key)?.canceling.abort(reason);
    this.waiting.forget(runId);
    return open.length;
  }

  /** Resolves when nothing is in flight. */
  async empty(): Promise<void> {
    while (this.#flight.size > 0) await Promise.all(this.#flight.trials.map(({ ended }) => ended));
  }

  /** Whether nothing is in flight, and nothing waits that could be started. */
  get isWorkedOff(): boolean {
    const { ledger, scope } = this.#parts;
    return this.#flight.size === 0 && ledger.queue.next(scope, 1, this.#leftOut()).length === 0;
  }

  /** Trials at a time. */
  get concurrency(): number {
    return this.#admission.concurrency;
  }

  set concurrency(trials: number) {
    this.#admission.concurrency = trials;
    this.#changed();
  }

  /** Why no trial is begun although there are some. */
  get blocked(): string | undefined {
    return this.#blocked?.reason;
  }

  /** Those that run. */
  running(): { trial: QueuedTrial; running: Running }[] {
    return this.#flight.trials.flatMap(({ trial, running }) => (running ? [{ trial, running }] : []));
  }

  /** Removes its sandboxes. Whoever disposes has waited until it is {@link empty}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batches[Symbol.asyncDispose]();
  }

  get #isHeld(): boolean {
    return this.#admitted.signal.aborted;
  }

  #leftOut(): LeftOut {
    const { trials, runs, variants } = this.#flight.leftOut();
    return { trials, runs: [...runs, ...this.waiting.keys()], variants };
  }

  async #take(trial: QueuedTrial, signal: AbortSignal): Promise<void> {
    const { ledger, runners, revisions, checks, observe } = this.#parts;
    using taken = new DisposableStack();
    const { revision, use } = revisions.use();
    taken.use(use);
    const context = this.#batches.take(trial.batch);
    taken.defer(() => this.#batches.release(trial.batch));
    const parts = { ledger, batches: this.#batches, harnesses: runners, revision };
    const check = async (spec: TrialSpec) => {
      if (checks) await this.#check.look(spec, revision, signal);
    };
    const specified = await specify(trial, parts, check);
    signal.throwIfAborted();
    if (specified.kind !== 'ready') {
      // By another configuration it may be ready.
      if (revision !== revisions.current) return;
      const again = specified.kind === 'waiting' && specified.again;
      const { kind, reason } = specified;
      const isNews = this.waiting.add(
        trial.run,
        { kind, run: trial.runId, case: trial.caseId, reason },
        { again },
      );
      observe({ kind: 'not-ready', trial, why: specified, isNews });
      return;
    }
    const { spec } = specified;
    if (!this.#flight.hasRoomFor(trial, spec)) return;
    const inFlight: WorkedTrial = {
      ...{ trial, spec, context },
      canceling: new AbortController(),
      state: 'looking',
      running: undefined,
      isAhead: false,
      ended: Promise.resolve(),
    };
    this.#flight.add(inFlight);
    const kept = taken.move();
    inFlight.ended = this.#run(inFlight, revision).finally(() => {
      kept.dispose();
      this.#flight.remove(trial.key);
      this.#changed();
    });
  }

  /** Never rejects. */
  async #run(inFlight: WorkedTrial, { gateway, config }: ConfigRevision): Promise<void> {
    const { trial, spec, context, canceling } = inFlight;
    const { sandboxes, builds } = context;
    const admission = this.#admission;
    const signal = AbortSignal.any([this.#stopped.signal, canceling.signal]);
    const admitted = AbortSignal.any([signal, this.#admitted.signal]);
    const budgets = {
      ...config.budgets,
      batch: this.#batches.budgetOf(trial.batch, config.budgets.batch),
    };
    const circuits = this.#circuits;
    const parts = { ...this.#parts, admission, circuits, gateway, sandboxes, budgets };
    try {
      await builds.ready(trial.runId, spec, admitted);
      if (inFlight.state === 'building') this.#changed();
      inFlight.state = 'ready';
      const observe = (event: AttemptEvent) => this.#observe(inFlight, event);
      await finishTrial(spec, trial.key, parts, { signal, admitted }, observe, () => this.#begun(inFlight));
    } catch (error) {
      this.#putBack(inFlight, admitted.aborted ? undefined : { error });
    }
  }

  #begun(inFlight: WorkedTrial): void {
    inFlight.state = 'running';
    inFlight.running = { phase: 'sandbox', at: this.#parts.monotonic() };
    this.#parts.observe({ kind: 'begun', trial: inFlight.trial });
    // The sandbox of the trial that gets the next permit starts while this one works.
    const next = this.#flight.trials.find(({ state, isAhead }) => state === 'ready' && !isAhead);
    if (!next || this.#isHeld) return;
    next.isAhead = true;
    next.context.sandboxes.startAhead(next.spec, this.#stopped.signal);
  }

  #observe(inFlight: WorkedTrial, event: AttemptEvent): void {
    if (event.kind === 'phase' && inFlight.running) inFlight.running.phase = event.phase;
    if (event.kind === 'retried') {
      // It may have failed for an image that is gone by now.
      this.#check.forget();
      inFlight.state = 'ready';
      inFlight.running = undefined;
    }
    this.#parts.observe({ ...event, trial: inFlight.trial });
  }

  /**
   * Queues a trial again. With a trouble of its own no other is begun, since none would fare better: the disk
   * is full, mostly.
   */
  #putBack({ trial, spec }: WorkedTrial, trouble: { error: unknown } | undefined): void {
    const { ledger, scope } = this.#parts;
    if (trouble && isOutage(trouble.error)) {
      this.#giveUp(spec.model, trouble.error);
      return;
    }
    try {
      // Of a result that could not be kept the attempt is still open.
      ledger.queue.putBack(scope, trial.key);
    } catch (error) {
      this.#block(trial, trouble?.error ?? error);
      return;
    }
    if (trouble) this.#block(trial, trouble.error);
  }

  /** Starts no more trials of a model that is down for too long, or none at all where the engine is. */
  #giveUp(model: string, error: unknown): void {
    this.#flight.giveUp(model, error);
    if (this.#circuits.isEngineOpen) this.hold();
  }

  #block(trial: QueuedTrial, error: unknown): void {
    const { onTrouble, observe, monotonic } = this.#parts;
    const reason = messageOf(error);
    observe({ kind: 'put-back', trial, error, isNews: this.#blocked?.reason !== reason });
    if (onTrouble === 'pause') {
      this.#blocked = { reason, until: monotonic() + blockedMs };
      return;
    }
    this.#trouble ??= { error };
    this.hold();
  }

  #changed(): void {
    const { resolve } = this.#change;
    this.#change = Promise.withResolvers<void>();
    resolve();
    this.#parts.changed?.();
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof OffsiteError && error.code === 'CIRCUIT_OPEN';
}
