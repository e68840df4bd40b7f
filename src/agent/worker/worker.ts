import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError } from '../../base/offsite-error.ts';
import { requireEngineRoom } from '../../engine/container/disk-space.ts';
import type { Spent } from '../../gateway/budget.ts';
import type { BatchKey, TrialKey } from '../../ledger/batches.ts';
import type { ExcludedTrials } from '../../ledger/queue.ts';
import { type BuildEvent, isOpen, type OpenBuildState } from '../../trial/prepare/obtain-image.ts';
import { Admission, requireRoomForResults, roomOf } from '../admission.ts';
import { BatchContexts } from '../batch-contexts.ts';
import type { CircuitEvent } from '../circuits.ts';
import type { NotClaimed } from '../claims.ts';
import type { WorkStatus } from '../daemon/status.ts';
import { areSeveral, enginesOf } from '../engines/check.ts';
import { type EngineStatus, Engines } from '../engines/engines.ts';
import { MachineCheck } from '../specify.ts';
import { Flight, type WorkedTrial } from './flight.ts';
import { TrialWork, type TrialWorkParts } from './trial-work.ts';
import { TrialsElsewhere, WaitingRuns } from './waiting-runs.ts';
import type { WorkerParts } from './worker-parts.ts';

/**
 * Milliseconds until the worker looks at the queue again when nothing wakes it: a waiting run may be due for
 * another try.
 */
const idleMs = 10_000;

const noLimit = { cpus: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };

/**
 * Runs the trials of its part of the queue, oldest first. The caller either calls `workOff` once, or `fill`
 * repeatedly until it stops the worker.
 */
export class Worker implements AsyncDisposable {
  readonly #parts: TrialWorkParts;
  readonly #work: TrialWork;
  /** The installs and prepares that are not built yet, with the monotonic time of their state. */
  readonly #builds = new Map<string, { what: string; state: OpenBuildState; at: number }>();
  readonly #joining: Disposable | undefined;
  /** Resolved and replaced whenever the worker may take more trials. */
  #change = Promise.withResolvers<void>();

  constructor(parts: WorkerParts) {
    const { ledger, clock, revisions, scope } = parts;
    const changed = () => {
      const { resolve } = this.#change;
      this.#change = Promise.withResolvers<void>();
      resolve();
      parts.changed?.();
    };
    const all = enginesOf(parts);
    const several = areSeveral(parts);
    const waiting = new WaitingRuns(clock);
    const elsewhere = new TrialsElsewhere(clock);
    const check = new MachineCheck(parts);
    const engines = new Engines({
      ...parts,
      engines: all,
      areSeveral: several,
      check,
      observe: (event) => this.#observeCircuit(event),
    });
    const flight = new Flight((model) => engines.isModelOpen(model));
    const admission = new Admission({
      clock,
      concurrency: revisions.current.concurrency,
      // If there are several engines, each has its own room.
      room: several ? noLimit : roomOf(all[0].capabilities),
      async requireRoom() {
        await requireRoomForResults(ledger.dataFolder);
        await requireEngineRoom(enginesOf(parts));
      },
      onWait: () => void this.#work.claimNext(),
    });
    const batches = new BatchContexts({
      ...parts,
      buildPermits: admission.builds,
      onBuild(run) {
        flight.markBuilding(run);
        changed();
      },
      observeBuild: (build) => this.#observeBuild(build),
      hasMore: (batch) => ledger.queue.count({ ...scope, batch }) > 0,
    });
    this.#joining = parts.lateEngines?.onJoin((engine) => {
      engines.join(engine);
      // The new engine may be able to run what no other engine can.
      check.forget();
      waiting.clear();
      this.concurrency += revisions.current.trialsOn?.(engine) ?? 0;
    });
    const shared = { engines, flight, admission, batches, check, waiting, elsewhere, changed };
    this.#parts = { ...parts, ...shared };
    this.#work = new TrialWork(this.#parts);
  }

  /** Takes trials until enough are in flight. Resolves with the milliseconds until the next call is due. */
  async fill(signal: AbortSignal): Promise<number> {
    const { ledger, scope, flight, elsewhere, waiting } = this.#parts;
    const work = this.#work;
    const blockedMs = work.unblock();
    if (blockedMs > 0) return blockedMs;
    for (;;) {
      const room = flight.room(this.concurrency);
      if (room <= 0 || work.isHeld || work.blocked !== undefined) return idleMs;
      const next = ledger.queue.next(scope, room, this.#leftOut());
      if (next.length === 0) return Math.min(idleMs, elsewhere.nextMs ?? idleMs, waiting.nextMs ?? idleMs);
      for (const trial of next) {
        // Somebody may have stopped the worker while the previous trial was checked.
        if (!work.isHeld) await work.take(trial, signal);
      }
    }
  }

  /**
   * Works until no trial is left that can be started. Rejects, in this order of precedence: with the signal's
   * reason if it aborts, with the failure that stopped the work, or with the reason why a trial gave up
   * waiting.
   */
  async workOff(signal: AbortSignal): Promise<void> {
    const { scope, batches, flight, elsewhere } = this.#parts;
    const { batch } = scope;
    using shared = new DisposableStack();
    if (batch !== undefined) {
      // Keeps the context of the batch open between its trials.
      shared.use(batches.take(batch));
    }
    const stop = () => this.stop(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    try {
      for (;;) {
        const change = this.#change.promise;
        if (!signal.aborted) await this.fill(signal);
        const isIdle = flight.size === 0;
        if (isIdle && (this.#work.isHeld || this.isWorkedOff)) break;
        const { nextMs } = elsewhere;
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
    if (this.#work.failure) throw this.#work.failure.error;
    for (const error of flight.givenUp) throw error;
  }

  /** Starts no more trials; those that wait for a permit are queued again. */
  hold(): void {
    this.#work.hold();
  }

  /** Starts trials again after {@link hold}. */
  resume(): void {
    this.#work.resume();
  }

  /** Ends the running trials. Their attempts keep what they found so far, and the trials are queued again. */
  stop(reason: unknown): void {
    this.#work.stop(reason);
  }

  /** Removes a run's open trials from the queue, and ends those that run. Returns how many there were. */
  cancel(runId: string): number {
    const { ledger, scope, flight, waiting } = this.#parts;
    const open = ledger.queue.openTrials(scope, runId).map(({ key }) => key);
    ledger.queue.withdraw(open, 'canceled');
    const reason = infrastructureError('CANCELED', 'the run was canceled');
    for (const key of open) flight.get(key)?.canceling.abort(reason);
    waiting.forget(runId);
    return open.length;
  }

  /** Resolves when no trial of a batch or run, by the service's id, is in flight any more. */
  async left(id: string): Promise<void> {
    const ending = this.#parts.flight.trials.filter(({ trial }) => [trial.batchId, trial.runId].includes(id));
    await Promise.all(ending.map(({ ended }) => ended));
  }

  /**
   * Leaves a trial that this agent must not run any more: removes it from the queue, and ends it if it runs.
   * Resolves when its sandbox is gone. A result that is already stored stays.
   */
  async leave(key: TrialKey, reason: NotClaimed): Promise<void> {
    const { ledger, flight } = this.#parts;
    const one = flight.get(key);
    if (!one) {
      if (ledger.fleetTasks.isOpen(key)) ledger.queue.withdraw([key], 'elsewhere');
      return;
    }
    const { at } = one;
    one.canceling.abort(reason);
    await one.ended;
    await at?.context.sandboxes.removalsEnded();
  }

  /** Resolves when no trial is in flight. */
  async empty(): Promise<void> {
    const { flight } = this.#parts;
    while (flight.size > 0) await Promise.all(flight.trials.map(({ ended }) => ended));
  }

  /**
   * Whether no trial is in flight, and no queued trial could be started. A trial that another agent has may
   * come back, so the work is not over while there is one.
   */
  get isWorkedOff(): boolean {
    const { ledger, scope, flight } = this.#parts;
    const { trials, ...others } = this.#leftOut();
    return flight.size === 0 && ledger.queue.next(scope, 1, others).length === 0;
  }

  /** How many trials may run at a time. */
  get concurrency(): number {
    return this.#parts.admission.concurrency;
  }

  set concurrency(trials: number) {
    this.#parts.admission.concurrency = trials;
    this.#parts.changed();
  }

  /** Why no trial starts although some are queued. */
  get blocked(): string | undefined {
    return this.#work.blocked;
  }

  /** Keeps runs from starting. */
  get waiting(): WaitingRuns {
    return this.#parts.waiting;
  }

  /** What the models of a batch have used since this process first saw the batch. */
  spentBy(batch: BatchKey): Spent {
    return this.#parts.batches.spentBy(batch);
  }

  /** The trials that run. */
  running(): WorkedTrial[] {
    return this.#parts.flight.trials.filter(({ running }) => running);
  }

  /** What it does, and what it waits for. */
  status(): WorkStatus {
    const { ledger, scope, waiting, elsewhere, clock } = this.#parts;
    const now = clock.monotonic();
    // Other agents may have ended the trials of some runs since, and a trial may have left the queue.
    const open = new Set(ledger.queue.openRuns(scope).map(({ runId }) => runId));
    const runs = waiting.all().filter(({ run }) => open.has(run));
    return {
      running: this.running().flatMap(({ trial, running, at }) => {
        const { batchId: batch, suite, runId: run, caseId, ordinal } = trial;
        const engine = at?.pooled.engine.name;
        if (!running) return [];
        const { phase, at: since } = running;
        const forMs = Math.round(now - since);
        return { batch, suite, run, case: caseId, ordinal, phase, ...(engine && { engine }), forMs };
      }),
      building: [...this.#builds.values()].map(({ at, ...build }) => ({
        ...build,
        forMs: Math.round(now - at),
      })),
      waiting: runs.filter(({ kind }) => kind === 'waiting'),
      parked: runs.filter(({ kind }) => kind === 'parked'),
      claimedElsewhere: elsewhere.shown(new Set(ledger.queue.stillQueued(scope, elsewhere.keys()))),
    };
  }

  /** The engines, with what runs there. Those that have been away since the start come last. */
  engines(): EngineStatus[] {
    const { lateEngines } = this.#parts;
    const away = (lateEngines?.away ?? []).map(({ name, address, trials }) => {
      return { name, address, works: false, running: 0, trials };
    });
    const running = this.running().map(({ at }) => at?.pooled);
    const connected = this.#parts.engines.pool.map((pooled) => {
      const { name = '', address, trials } = pooled.engine;
      const here = running.filter((one) => one === pooled).length;
      return { name, address, works: !pooled.isDown, running: here, trials };
    });
    return [...connected, ...away];
  }

  /** Whether trials wait because no engine answers. */
  get isEngineDown(): boolean {
    return this.#parts.engines.areAllDown;
  }

  /**
   * Finds out whether the engine answers. If not, trials wait, as they do after a trial failed because of the
   * engine.
   */
  async suspectEngine(reason: string, signal: AbortSignal): Promise<void> {
    await this.#parts.engines.suspect(reason, signal);
  }

  /** Resolves when an engine answers, even if no trial waits for it. */
  async engineAnswers(signal: AbortSignal): Promise<void> {
    await this.#parts.engines.anyAnswers(signal);
  }

  /** Removes the worker's sandboxes. Wait for {@link empty} before you dispose. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#joining?.[Symbol.dispose]();
    this.#parts.engines[Symbol.dispose]();
    await this.#parts.batches[Symbol.asyncDispose]();
  }

  #leftOut(): ExcludedTrials {
    const { flight, waiting, elsewhere } = this.#parts;
    const { trials, runs, variants } = flight.leftOut();
    return { trials: [...trials, ...elsewhere.keys()], runs: [...runs, ...waiting.keys()], variants };
  }

  #observeCircuit(event: CircuitEvent): void {
    const { observe, changed } = this.#parts;
    observe(event);
    // What is down here may work for another agent.
    if (event.kind === 'waiting') this.#work.giveBackWaiting();
    changed();
  }

  #observeBuild(build: BuildEvent): void {
    const { id, what, state } = build;
    if (isOpen(state)) this.#builds.set(id, { what, state: state.kind, at: this.#parts.clock.monotonic() });
    else this.#builds.delete(id);
    this.#parts.observe({ kind: 'build', build });
  }

  /** Resolves at the next change, or after the given milliseconds. */
  async #changeWithin(ms: number | undefined, change: Promise<void>): Promise<void> {
    if (ms === undefined) return change;
    using deadline = startDeadline(this.#parts.clock, Math.max(1, ms));
    await Promise.race([change, deadline.reached]);
  }
}
