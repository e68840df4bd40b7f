import { infrastructureError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { PlannedReplay } from '../../suite/plan.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import { type Admission, sizeOfTrial } from '../admission.ts';
import type { BatchContext, BatchContexts, EngineContext } from '../batch-contexts.ts';
import { type Claims, type Lease, NotClaimed, noClaims } from '../claims.ts';
import type { ConfigRevision } from '../config-revision.ts';
import { type Engines, Moved, type Seat } from '../engines/engines.ts';
import { finishTrial } from '../finish-trial.ts';
import { plannedCassette } from '../ledger-cassette.ts';
import { type MachineCheck, specify } from '../specify.ts';
import type { Flight, WorkedTrial } from './flight.ts';
import { retryMs, type TrialsElsewhere, type WaitingRuns } from './waiting-runs.ts';
import type { AttemptEvent, WorkerParts } from './worker-parts.ts';

/** Milliseconds without new trials after a trial could not be finished, for example on a full disk. */
const blockedMs = 15_000;

/** What the trials of a worker share. */
export interface TrialWorkParts extends WorkerParts {
  flight: Flight;
  engines: Engines;
  admission: Admission;
  batches: BatchContexts;
  check: MachineCheck;
  waiting: WaitingRuns;
  elsewhere: TrialsElsewhere;
  /** Called when the worker may take more trials. */
  changed(): void;
}

/**
 * Takes queued trials into flight, and brings each to its end: it finds out what to do, gets a seat at an
 * engine, waits for its environment, and makes attempts until it has a result. No trial begins while the work
 * is held by a caller, or blocked because a trial could not be finished.
 *
 * The trial that gets the next permit is claimed ahead, while another trial works, and its sandbox is
 * started, unless the trial has services. Each other trial is claimed when it has its permit.
 */
export class TrialWork {
  readonly #parts: TrialWorkParts;
  readonly #claims: Claims;
  /** Aborts to queue again the trials that have no permit yet. {@link resume} makes a new one. */
  #admitted = new AbortController();
  /** Aborts to end the running trials. */
  readonly #stopped = new AbortController();
  #blocked: { reason: string; until: number } | undefined;
  #failure: { error: unknown } | undefined;
  /** The trial that is ahead, until it is claimed with its permit or leaves. */
  #ahead: WorkedTrial | undefined;

  constructor(parts: TrialWorkParts) {
    this.#parts = parts;
    this.#claims = parts.claims ?? noClaims;
  }

  get isHeld(): boolean {
    return this.#admitted.signal.aborted;
  }

  /** Why no trial starts although some are queued. */
  get blocked(): string | undefined {
    return this.#blocked?.reason;
  }

  /** Why the work ended, if `onFailure` is `stop`. */
  get failure(): { error: unknown } | undefined {
    return this.#failure;
  }

  hold(): void {
    const message = 'the worker starts no trials now';
    this.#admitted.abort(infrastructureError('HELD', message));
    this.#parts.changed();
  }

  resume(): void {
    if (this.isHeld) this.#admitted = new AbortController();
    this.#parts.changed();
  }

  stop(reason: unknown): void {
    this.hold();
    this.#stopped.abort(reason);
  }

  /** Ends a block whose time is over. Returns the milliseconds that one still lasts, 0 if there is none. */
  unblock(): number {
    const ms = (this.#blocked?.until ?? 0) - this.#parts.clock.monotonic();
    if (this.#blocked && ms > 0) return ms;
    this.#blocked = undefined;
    return 0;
  }

  /** Takes a queued trial into flight, if it can run here now. Does not wait for its end. */
  async take(trial: StoredTrial, signal: AbortSignal): Promise<void> {
    const { ledger, runners, revisions, checks, batches, waiting, flight, observe, check } = this.#parts;
    using taken = new DisposableStack();
    const { revision, use } = revisions.use();
    taken.use(use);
    const context = taken.use(batches.take(trial.batch));
    const look = async (spec: TrialSpec) => {
      if (checks) await check.look(spec, revision, signal);
    };
    const specified = await specify(trial, { ledger, batches, harnesses: runners, revision }, look);
    signal.throwIfAborted();
    if (specified.kind !== 'ready') {
      // The trial may be ready under the current configuration.
      if (revision !== revisions.current) return;
      const again = specified.kind === 'waiting' && specified.again;
      const { kind, reason } = specified;
      const run = { kind, run: trial.runId, case: trial.caseId, reason };
      const isNews = waiting.add(trial.run, run, again ? retryMs : undefined);
      observe({ kind: 'not-ready', trial, why: specified, isNews });
      return;
    }
    const { spec } = specified;
    if (!flight.hasRoomFor(trial, spec)) return;
    const one: WorkedTrial = {
      trial,
      spec,
      at: undefined,
      canceling: new AbortController(),
      state: 'looking',
      running: undefined,
      triedAhead: false,
      lease: undefined,
      ended: Promise.resolve(),
    };
    flight.add(one);
    const kept = taken.move();
    one.ended = this.#run(one, context, revision).finally(() => {
      kept.dispose();
      flight.remove(trial.key);
      this.#parts.changed();
    });
  }

  /** Runs a trial in flight to its end. Never rejects. */
  async #run(one: WorkedTrial, context: BatchContext, revision: ConfigRevision): Promise<void> {
    const signal = AbortSignal.any([this.#stopped.signal, one.canceling.signal]);
    const admitted = AbortSignal.any([signal, this.#admitted.signal]);
    try {
      using seat = await this.#parts.engines.seat(one.spec, admitted);
      for (let isEnded = false; !isEnded; ) {
        const at = { pooled: seat.pooled, context: context.on(seat.pooled.engine) };
        one.at = at;
        isEnded = await this.#runAt(seat, at.context, one, { signal, admitted }, revision);
      }
    } catch (error) {
      if (error instanceof NotClaimed) this.#leave(one, error);
      else this.#putBack(one, admitted.aborted ? undefined : { error });
    }
  }

  /**
   * Runs a trial at the engine of its seat. Resolves with false if its seat has moved to another engine.
   * Rejects as `finishTrial` does.
   */
  async #runAt(
    seat: Seat,
    { sandboxes, builds }: EngineContext,
    one: WorkedTrial,
    signals: { signal: AbortSignal; admitted: AbortSignal },
    { gateway, config }: ConfigRevision,
  ): Promise<boolean> {
    const { batches, check, ledger, changed, clock, observe } = this.#parts;
    const { trial, spec } = one;
    const { budget } = config.workspaces;
    const attemptParts = {
      ...this.#parts,
      gateway,
      sandboxes,
      budgets: { ...config.budgets, batch: batches.budgetOf(trial.batch, config.budgets.batch) },
      seat,
      cassette: (replay: PlannedReplay) => plannedCassette(ledger, replay),
      blobs: ledger.blobs,
      keep: budget > 0 ? { store: ledger.workspaces, budget } : undefined,
      claim: (signal: AbortSignal) => this.#claim(one, signal),
    };
    const observeAttempt = (event: AttemptEvent) => {
      if (event.kind === 'phase' && one.running) one.running.phase = event.phase;
      if (event.kind === 'retried') {
        // The attempt may have failed because its image no longer exists.
        check.forget();
        one.state = 'ready';
        one.running = undefined;
      }
      observe({ ...event, trial });
    };
    const begun = () => {
      one.state = 'running';
      one.running = { phase: 'sandbox', at: clock.monotonic() };
      observe({ kind: 'begun', trial });
      void this.claimNext();
    };
    try {
      await builds.ready(trial.runId, spec, signals.admitted);
      if (one.state === 'building') changed();
      one.state = 'ready';
      await finishTrial(spec, trial.key, attemptParts, signals, observeAttempt, begun);
      return true;
    } catch (error) {
      if (error instanceof Moved) return false;
      throw error;
    } finally {
      // A trial that moves or was put back gets another sandbox, or another spec, which does not find this
      // sandbox.
      this.#giveBack(one);
    }
  }

  /** Leaves a trial to another agent, or to a later try. */
  #leave(one: WorkedTrial, { message: reason, why }: NotClaimed): void {
    const { ledger, observe, waiting, elsewhere } = this.#parts;
    const { trial, running } = one;
    const { run, runId, caseId } = trial;
    let isNews = true;
    try {
      if (why.kind === 'ended') ledger.queue.withdraw([trial.key], 'elsewhere');
      else if (why.kind === 'held') elsewhere.add(trial, reason, why.waitMs);
      else {
        const waiter = { kind: 'waiting', run: runId, case: caseId, reason } as const;
        isNews = waiting.add(run, waiter, why.waitMs ?? retryMs);
      }
    } catch (failure) {
      this.#block(trial, failure);
      return;
    }
    const hadBegun = running !== undefined;
    observe({ kind: 'not-claimed', trial, why: why.kind, reason, hadBegun, isNews });
  }

  /**
   * Queues a trial again. After a failure the worker starts no other trial for now: usually the disk is full,
   * so that other trials would fail as well. Trials of a model that is down for too long are not started
   * again, and none at all if the engine is down.
   */
  #putBack({ trial, running, at, spec }: WorkedTrial, failure: { error: unknown } | undefined): void {
    const { ledger, observe, scope, flight, engines } = this.#parts;
    if (running) observe({ kind: 'left', trial });
    if (failure?.error instanceof OffsiteError && failure.error.code === 'CIRCUIT_OPEN') {
      // Other engines may still run other trials of the model.
      const isEngine = at?.pooled.isDown === true && !engines.isModelOpen(spec.model);
      flight.giveUp(isEngine && !engines.areAllDown ? trial.run : spec.model, failure.error);
      if (engines.areAllDown) this.hold();
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

  /** Lets no trial start for now, or at all if `onFailure` is `stop`, because one could not be finished. */
  #block(trial: StoredTrial, error: unknown): void {
    const { onFailure, observe, clock } = this.#parts;
    const reason = messageOf(error);
    observe({ kind: 'put-back', trial, error, isNews: this.blocked !== reason });
    if (onFailure === 'pause') {
      this.#blocked = { reason, until: clock.monotonic() + blockedMs };
      return;
    }
    this.#failure ??= { error };
    this.hold();
  }

  /**
   * Claims the trial that gets the next permit, and starts its sandbox. If another trial is ahead and must
   * wait longer, it gives up its sandbox. A trial that cannot be claimed leaves the flight, and the one after
   * it is tried. Never rejects.
   */
  async claimNext(): Promise<void> {
    const { flight, admission } = this.#parts;
    const stopped = this.#stopped.signal;
    for (;;) {
      const { next: applicant } = admission;
      const next = flight.trials.find(({ spec }) => spec === applicant?.spec);
      if (!next || next.triedAhead || this.isHeld) return;
      if (this.#ahead) {
        // If that trial has its permit, it begins within milliseconds, and this is called again.
        if (!admission.isWaiting(this.#ahead.spec)) return;
        this.#giveBack(this.#ahead);
      }
      this.#ahead = next;
      next.triedAhead = true;
      const lease = this.#claims.acquire(next.trial, stopped);
      next.lease = lease;
      try {
        await lease;
      } catch (error) {
        // If the trial got its permit meanwhile, it waits for this lease too and meets the same error.
        if (next.lease !== lease) return;
        next.lease = undefined;
        if (this.#ahead === next) this.#ahead = undefined;
        if (!(error instanceof NotClaimed)) return;
        next.canceling.abort(error);
        continue;
      }
      // Services need memory and processors, for which the trial needs its permit.
      const hasServices = sizeOfTrial(next.spec).services.memory > 0;
      if (next.lease === lease && !hasServices) next.at?.context.sandboxes.start(next.spec, stopped);
      return;
    }
  }

  /** Claims a trial that has its permit, unless that was done ahead. */
  #claim(one: WorkedTrial, signal: AbortSignal): Promise<Lease> {
    const { lease, trial } = one;
    one.lease = undefined;
    // From now on it is too late to claim it ahead: a second lease would end this one.
    one.triedAhead = true;
    if (this.#ahead === one) this.#ahead = undefined;
    return lease ?? this.#claims.acquire(trial, signal);
  }

  /**
   * Gives back the trial that is ahead, with its sandbox, because it is not known when the trial begins. The
   * trial may be ahead again later.
   */
  giveBackWaiting(): void {
    if (this.#ahead) this.#giveBack(this.#ahead);
  }

  /** Gives back a trial that was claimed ahead and has not begun, and the sandbox that was started for it. */
  #giveBack(one: WorkedTrial): void {
    const { lease, spec, at } = one;
    one.lease = undefined;
    lease?.then((held) => held[Symbol.dispose]()).catch(() => undefined);
    at?.context.sandboxes.forget(spec);
    if (this.#ahead !== one) return;
    one.triedAhead = false;
    this.#ahead = undefined;
  }
}
