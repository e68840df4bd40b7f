import type { Clock } from '../clock.ts';
import type { Engine } from '../engine/engine.ts';
import type { Spent } from '../gateway/budget.ts';
import type { Runner } from '../harness/runner.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { LeftOut, QueuedTrial, QueueScope } from '../ledger/queue.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { type BuildEvent, isOpen, type OpenBuildState } from '../trial/build-event.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { Admission, requireRoomForResults } from './admission.ts';
import { Ahead } from './ahead.ts';
import { BatchContexts } from './batch-contexts.ts';
import { type CircuitEvent, Circuits } from './circuits.ts';
import { type Claims, noClaims } from './claims.ts';
import type { ConfigRevision, ConfigRevisions } from './config-revision.ts';
import { type AttemptEvent, finishTrial } from './finish-trial.ts';
import { Flight, type Running, type WorkedTrial } from './flight.ts';
import { NotClaimed } from './not-claimed.ts';
import { MachineCheck, type NotReady, specify } from './specify.ts';
import { TrialsElsewhere } from './trials-elsewhere.ts';
import { WaitingRuns } from './waiting-runs.ts';

/**
 * Milliseconds until the worker looks at the queue again when nothing wakes it: a waiting run may be due for
 * another try.
 */
const idleMs = 10_000;

/** Milliseconds without new trials after a trial could not be finished, for example on a full disk. */
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
  /** The part of the queue that this worker runs. The caller holds its lock. */
  scope: QueueScope;
  revisions: ConfigRevisions;
  /** Claims trials before they run. If not given, no other agent can run them. */
  claims?: Claims | undefined;
  /** Attempts of a trial that fails through no fault of the agent's. */
  attempts: number;
  /** Milliseconds that trials wait for an engine or a model that is down. */
  patienceMs: number;
  /**
   * Whether to check each trial against engine and configuration first. Needed if its plan was not checked.
   */
  checks: boolean;
  /**
   * What the worker does when it cannot finish a trial: `pause` queues it again and starts no trial for some
   * seconds, `stop` queues it again and starts no more trials.
   */
  onFailure: 'pause' | 'stop';
  observe(event: WorkEvent): void;
  /** Called when the worker may take more trials. */
  changed?: (() => void) | undefined;
}

export type WorkEvent =
  | { kind: 'begun'; trial: QueuedTrial }
  | (AttemptEvent & { trial: QueuedTrial })
  /** `isNews` unless an event with the same reason came before. */
  | { kind: 'not-ready'; trial: QueuedTrial; why: NotReady; isNews: boolean }
  /** The trial could not be finished and is queued again. */
  | { kind: 'put-back'; trial: QueuedTrial; error: unknown; isNews: boolean }
  /**
   * The trial must not run now: another agent has it (`held`) or has ended it (`ended`), or the service cannot
   * be asked (`unasked`). `hadBegun` if an attempt of it was running.
   */
  | {
      kind: 'not-claimed';
      trial: QueuedTrial;
      why: NotClaimed['why']['kind'];
      reason: string;
      hadBegun: boolean;
      isNews: boolean;
    }
  | { kind: 'build'; build: BuildEvent }
  | CircuitEvent;

/** An install or a prepare that is not built yet. */
export interface OpenBuild {
  what: string;
  state: OpenBuildState;
  /** When this state began, in monotonic milliseconds. */
  at: number;
}

/**
 * Runs the trials of its part of the queue, oldest first. The caller either calls `workOff` once, or `fill`
 * repeatedly until it stops the worker.
 */
export class Worker implements AsyncDisposable {
  /** Runs whose trials cannot start now. */
  readonly waiting: WaitingRuns;
  readonly #parts: WorkerParts;
  readonly #admission: Admission;
  readonly #circuits: Circuits;
  readonly #batches: BatchContexts;
  readonly #check: MachineCheck;
  readonly #ahead: Ahead;
  readonly #elsewhere: TrialsElsewhere;
  readonly #flight: Flight<WorkedTrial>;
  readonly #builds = new Map<string, OpenBuild>();
  /** Aborted to queue again the trials that have no permit yet. */
  #admitted = new AbortController();
  readonly #stopped = new AbortController();
  #blocked: { reason: string; until: number } | undefined;
  /** Why the work ended, if `onFailure` is `stop`. */
  #failure: { error: unknown } | undefined;
  /** Resolved and replaced whenever the worker may take more trials. */
  #change = Promise.withResolvers<void>();

  constructor(parts: WorkerParts) {
    const { engine, ledger, clock, monotonic, revisions, scope } = parts;
    this.#parts = parts;
    this.waiting = new WaitingRuns(monotonic);
    this.#elsewhere = new TrialsElsewhere(monotonic);
    this.#check = new MachineCheck(engine);
    this.#admission = new Admission({
      clock,
      concurrency: revisions.current.concurrency,
      requireRoom: () => requireRoomForResults(ledger.dataFolder),
    });
    const observe = (event: CircuitEvent) => {
      parts.observe(event);
      // Another agent may have what this one lacks.
      if (event.kind === 'waiting') for (const one of this.#flight.trials) this.#ahead.giveBack(one);
      this.#changed();
    };
    this.#circuits = new Circuits({ ...parts, observe });
    this.#flight = new Flight((model) => this.#circuits.isOpen(model));
    this.#ahead = new Ahead({
      flight: this.#flight,
      claims: parts.claims ?? noClaims,
      stopped: this.#stopped.signal,
      isHeld: () => this.#isHeld,
    });
    this.#batches = new BatchContexts({
      ...parts,
      buildPermits: this.#admission.builds,
      onBuild: (run) => {
        this.#flight.isBuilding(run);
        this.#changed();
      },
      observeBuild: (build) => this.#observeBuild(build),
      hasMore: (batch) => ledger.queue.count({ ...scope, batch }) > 0,
    });
  }

  /** Takes trials until enough are in flight. Resolves with the milliseconds until the next call is due. */
  async fill(signal: AbortSignal): Promise<number> {
    const { ledger, scope, monotonic } = this.#parts;
    if (this.#blocked && this.#blocked.until > monotonic()) return this.#blocked.until - monotonic();
    this.#blocked = undefined;
    for (;;) {
      const room = this.#flight.room(this.#admission.concurrency);
      if (room <= 0 || this.#isHeld || this.#blocked) return idleMs;
      const next = ledger.queue.next(scope, room, this.#leftOut());
      if (next.length === 0) return Math.min(idleMs, this.#elsewhere.nextMs ?? idleMs);
      for (const trial of next) {
        // Somebody may have stopped the worker while the previous trial was checked.
        if (!this.#isHeld) await this.#take(trial, signal);
      }
    }
  }

  /**
   * Works until no trial is left that can be started. Rejects, in this order of precedence: with the signal's
   * reason if it aborts, with the failure that stopped the work, or with the reason why a trial gave up
   * waiting.
   */
  async workOff(signal: AbortSignal): Promise<void> {
    const { batch } = this.#parts.scope;
    using shared = new DisposableStack();
    if (batch !== undefined) {
      // Keeps the context of the batch open between its trials.
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
        const isIdle = this.#flight.size === 0;
        if (isIdle && (this.#isHeld || this.isWorkedOff)) break;
        const { nextMs } = this.#elsewhere;
        if (!isIdle || nextMs !== undefined) await this.#changeWithin(nextMs, change);
      }
    } catch (error) {
      this.stop(error);
      await this.empty();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
    if (this.#failure) throw this.#failure.error;
    for (const error of this.#flight.givenUp) throw error;
  }

  /** Starts no more trials; those that wait for a permit are queued again. */
  hold(): void {
    const message = 'the worker starts no trials now';
    this.#admitted.abort(new OffsiteError(message, { code: 'HELD', kind: 'infrastructure' }));
    this.#changed();
  }

  /** Starts trials again after {@link hold}. */
  resume(): void {
    if (this.#isHeld) this.#admitted = new AbortController();
    this.#changed();
  }

  /**
   * Ends the running trials. Their attempts keep what they found so far, and the trials are queued again.
   */
  stop(reason: unknown): void {
    this.hold();
    this.#stopped.abort(reason);
  }

  /** Removes a run's open trials from the queue, and ends those that run. Returns how many there were. */
  cancel(runId: string): number {
    const { ledger, scope } = this.#parts;
    const open = ledger.queue.openTrials(scope, runId).map(({ key }) => key);
    ledger.queue.withdraw(open, 'canceled');
    const reason = new OffsiteError('the run was canceled', { code: 'CANCELED', kind: 'infrastructure' });
    for (const key of open) this.#flight.get(key)?.canceling.abort(reason);
    this.waiting.forget(runId);
    return open.length;
  }

  /** Resolves when no trial is in flight. */
  async empty(): Promise<void> {
    while (this.#flight.size > 0) await Promise.all(this.#flight.trials.map(({ ended }) => ended));
  }

  /**
   * Whether no trial is in flight, and no queued trial could be started. A trial that another agent has may
   * come back, so the work is not over while there is one.
   */
  get isWorkedOff(): boolean {
    const { ledger, scope } = this.#parts;
    const { trials, ...others } = this.#leftOut();
    return this.#flight.size === 0 && ledger.queue.next(scope, 1, others).length === 0;
  }

  /** How many trials may run at a time. */
  get concurrency(): number {
    return this.#admission.concurrency;
  }

  set concurrency(trials: number) {
    this.#admission.concurrency = trials;
    this.#changed();
  }

  /** Why no trial starts although some are queued. */
  get blocked(): string | undefined {
    return this.#blocked?.reason;
  }

  /** What the models of a batch have used since this process first saw the batch. */
  spentBy(batch: BatchKey): Spent {
    return this.#batches.spentBy(batch);
  }

  /** The installs and prepares that are built, or wait to be. */
  building(): OpenBuild[] {
    return [...this.#builds.values()];
  }

  /** The trials that run. */
  running(): { trial: QueuedTrial; running: Running }[] {
    return this.#flight.trials.flatMap(({ trial, running }) => (running ? [{ trial, running }] : []));
  }

  /** Resolves at the next change, or after so many milliseconds. */
  async #changeWithin(ms: number | undefined, change: Promise<void>): Promise<void> {
    if (ms === undefined) return change;
    const over = new AbortController();
    const sleeping = this.#parts.clock.sleep(Math.max(1, ms), over.signal).catch(() => undefined);
    await Promise.race([change, sleeping]);
    over.abort();
  }

  /** Removes the worker's sandboxes. Wait for {@link empty} before you dispose. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batches[Symbol.asyncDispose]();
  }

  get #isHeld(): boolean {
    return this.#admitted.signal.aborted;
  }

  #leftOut(): LeftOut {
    const { trials, runs, variants } = this.#flight.leftOut();
    return {
      trials: [...trials, ...this.#elsewhere.keys()],
      runs: [...runs, ...this.waiting.keys()],
      variants,
    };
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
      // The current configuration may make it ready.
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
      lease: undefined,
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
    const claim = (signal: AbortSignal) => this.#ahead.claim(inFlight, signal);
    const parts = { ...this.#parts, admission, circuits, gateway, sandboxes, budgets, claim };
    try {
      await builds.ready(trial.runId, spec, admitted);
      if (inFlight.state === 'building') this.#changed();
      inFlight.state = 'ready';
      const observe = (event: AttemptEvent) => this.#observe(inFlight, event);
      await finishTrial(spec, trial.key, parts, { signal, admitted }, observe, () => this.#begun(inFlight));
    } catch (error) {
      if (error instanceof NotClaimed) this.#leave(inFlight, error);
      else this.#putBack(inFlight, admitted.aborted ? undefined : { error });
    } finally {
      this.#ahead.giveBack(inFlight);
      // A trial that was put back gets another spec the next time, which this sandbox would not be found by.
      sandboxes.forget(spec);
    }
  }

  #begun(inFlight: WorkedTrial): void {
    inFlight.state = 'running';
    inFlight.running = { phase: 'sandbox', at: this.#parts.monotonic() };
    this.#parts.observe({ kind: 'begun', trial: inFlight.trial });
    void this.#ahead.start();
  }

  #observe(inFlight: WorkedTrial, event: AttemptEvent): void {
    if (event.kind === 'phase' && inFlight.running) inFlight.running.phase = event.phase;
    if (event.kind === 'retried') {
      // It may have failed because its image no longer exists.
      this.#check.forget();
      inFlight.state = 'ready';
      inFlight.running = undefined;
    }
    this.#parts.observe({ ...event, trial: inFlight.trial });
  }

  #observeBuild(build: BuildEvent): void {
    const { id, what, state } = build;
    if (isOpen(state)) this.#builds.set(id, { what, state: state.kind, at: this.#parts.monotonic() });
    else this.#builds.delete(id);
    this.#parts.observe({ kind: 'build', build });
  }

  /** Leaves a trial to another agent, or to a later try. */
  #leave(inFlight: WorkedTrial, error: NotClaimed): void {
    const { ledger, observe } = this.#parts;
    const { trial, running } = inFlight;
    const { message: reason, why } = error;
    let isNews = true;
    try {
      switch (why.kind) {
        case 'ended':
          ledger.queue.withdraw([trial.key], 'elsewhere');
          break;
        case 'held':
          this.#elsewhere.add(trial.key, why.waitMs);
          break;
        case 'unasked': {
          const { run, runId, caseId } = trial;
          isNews = this.waiting.add(
            run,
            { kind: 'waiting', run: runId, case: caseId, reason },
            { again: true },
          );
        }
      }
    } catch (failure) {
      this.#block(trial, failure);
      return;
    }
    observe({
      kind: 'not-claimed',
      trial,
      why: why.kind,
      reason,
      hadBegun: running !== undefined,
      isNews,
    });
  }

  /**
   * Queues a trial again. After a failure the worker starts no other trial for now: usually the disk is full,
   * so that other trials would fail as well.
   */
  #putBack({ trial, spec }: WorkedTrial, failure: { error: unknown } | undefined): void {
    const { ledger, scope } = this.#parts;
    if (failure && isOutage(failure.error)) {
      this.#giveUp(spec.model, failure.error);
      return;
    }
    try {
      // If the result could not be stored, its attempt is still open.
      ledger.queue.putBack(scope, trial.key);
    } catch (error) {
      this.#block(trial, failure?.error ?? error);
      return;
    }
    if (failure) this.#block(trial, failure.error);
  }

  /**
   * Starts no more trials of a model that is down for too long, or no trials at all if the engine is down.
   */
  #giveUp(model: string, error: unknown): void {
    this.#flight.giveUp(model, error);
    if (this.#circuits.isEngineOpen) this.hold();
  }

  #block(trial: QueuedTrial, error: unknown): void {
    const { onFailure, observe, monotonic } = this.#parts;
    const reason = messageOf(error);
    observe({ kind: 'put-back', trial, error, isNews: this.#blocked?.reason !== reason });
    if (onFailure === 'pause') {
      this.#blocked = { reason, until: monotonic() + blockedMs };
      return;
    }
    this.#failure ??= { error };
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
