import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Runner } from '../../harness/runner.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock, type QueuedTrial } from '../../ledger/queue.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Admission } from '../admission.ts';
import { buildImage } from '../build-image.ts';
import type { Circuits } from '../circuits.ts';
import { type AttemptEvent, finishTrial } from '../finish-trial.ts';
import type { BatchesInHand } from './batches-in-hand.ts';
import type { Generation, Generations } from './generation.ts';
import { type InHand, namesOf, runningTrial } from './in-hand.ts';
import type { Metrics } from './metrics.ts';
import { observeAttempt } from './observe-attempt.ts';
import type { RunningTrial } from './status.ts';
import { specify } from './trial-specs.ts';
import type { WaitingRuns } from './waiting-runs.ts';

/** Attempts of a trial that fails through no fault of the agent's. */
const attempts = 3;

/** Milliseconds until the queue is looked at again although nothing told of anything new: a run may have waited for its time. */
const idleMs = 10_000;

/** Milliseconds until trials are begun again after the disk was full. */
const blockedMs = 15_000;

export interface WorkParts {
  engine: Engine;
  runners: readonly Runner[];
  ledger: Ledger;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** The service's name in the ledger. */
  service: string;
  admission: Admission;
  circuits: Circuits;
  batches: BatchesInHand;
  waiting: WaitingRuns;
  metrics: Metrics;
  log: Logger;
  generations: Generations;
  /** A report is in the outbox. */
  finished(): void;
  /** A trial has left the hand: there is room for another. */
  left(): void;
}

/**
 * Runs the trials of the queue. So many are in hand as run at a time, and as many more wait for their places: what is in hand is all that
 * is in memory, however long the queue is.
 */
export class Work {
  readonly #parts: WorkParts;
  readonly #hand = new Map<TrialKey, InHand>();
  /** Sandboxes that the engine was seen to be able to run. */
  readonly #checkedImages = new Set<string>();
  /** Aborted to put back what has not begun. */
  #admitted = new AbortController();
  readonly #stopped = new AbortController();
  #blocked: { reason: string; until: number } | undefined;

  constructor(parts: WorkParts) {
    this.#parts = parts;
  }

  /** Takes trials into hand until there are enough. Resolves with the milliseconds until the next look. */
  async fill(signal: AbortSignal): Promise<number> {
    const { ledger, service, admission, waiting, monotonic } = this.#parts;
    if (this.#blocked && this.#blocked.until > monotonic()) return this.#blocked.until - monotonic();
    this.#blocked = undefined;
    for (;;) {
      const limit = 2 * admission.concurrency - this.#hand.size;
      if (limit <= 0 || this.#blocked || this.#admitted.signal.aborted) return idleMs;
      const trials = this.#hand.keys();
      const next = ledger.queue.next({ service, lock: daemonLock }, limit, { trials, runs: waiting.keys() });
      if (next.length === 0) return idleMs;
      for (const trial of next) {
        // While the one before was looked into, somebody may have said stop.
        if (!this.#admitted.signal.aborted) await this.#take(trial, signal);
      }
    }
  }

  /** Begins no more trials; those that wait for a place go back to the queue. */
  hold(): void {
    const reason = new OffsiteError('no trial is begun now', { code: 'HELD', kind: 'infrastructure' });
    this.#admitted.abort(reason);
  }

  /** Begins trials again after {@link hold}. */
  goOn(): void {
    if (this.#admitted.signal.aborted) this.#admitted = new AbortController();
  }

  /** Ends the trials that run: what they found so far is kept with their attempts, and they are queued again. */
  stop(): void {
    this.hold();
    const message = 'the daemon was told to stop';
    this.#stopped.abort(new OffsiteError(message, { code: 'STOPPED', kind: 'infrastructure' }));
  }

  /** Takes a run's open trials out of the queue, and ends those that run. Returns how many there were. */
  cancel(runId: string): number {
    const { ledger, service, waiting } = this.#parts;
    const open = ledger.queue.openTrials({ service, lock: daemonLock }, runId).map(({ key }) => key);
    ledger.queue.withdraw(open, 'canceled');
    const reason = new OffsiteError('the run was canceled', { code: 'CANCELED', kind: 'infrastructure' });
    for (const key of open) this.#hand.get(key)?.canceling.abort(reason);
    waiting.forget(runId);
    return open.length;
  }

  /** Resolves when nothing is in hand. */
  async empty(): Promise<void> {
    while (this.#hand.size > 0) await Promise.all([...this.#hand.values()].map(({ ended }) => ended));
  }

  get inHand(): number {
    return this.#hand.size;
  }

  /** Why no trial is begun although there are some. */
  get blocked(): string | undefined {
    return this.#blocked?.reason;
  }

  running(): RunningTrial[] {
    const now = this.#parts.monotonic();
    return [...this.#hand.values()].flatMap((inHand) => runningTrial(inHand, now) ?? []);
  }

  async #take(trial: QueuedTrial, signal: AbortSignal): Promise<void> {
    const { engine, runners, ledger, batches, waiting, log, generations } = this.#parts;
    using taken = new DisposableStack();
    const { generation, use } = generations.use();
    taken.use(use);
    const sandboxes = batches.take(trial.batch);
    taken.defer(() => batches.release(trial.batch));
    const parts = { engine, ledger, batches, harnesses: runners, generation, checked: this.#checkedImages };
    const specified = await specify(trial, parts, signal);
    if (specified.kind !== 'ready') {
      // By another configuration it may be ready.
      if (generation !== generations.current) return;
      const { kind, reason } = specified;
      const again = specified.kind === 'waiting' && specified.again;
      const run = { kind, run: trial.runId, case: trial.caseId, reason };
      if (waiting.add(trial.run, run, { again }))
        log.warn({ ...namesOf(trial), reason }, kind === 'parked' ? 'parked a run' : 'a run waits');
      return;
    }
    const inHand: InHand = {
      trial,
      spec: specified.spec,
      sandboxes,
      canceling: new AbortController(),
      begun: undefined,
      isAhead: false,
      ended: Promise.resolve(),
    };
    this.#hand.set(trial.key, inHand);
    const kept = taken.move();
    inHand.ended = this.#run(inHand, generation).finally(() => {
      kept.dispose();
      this.#hand.delete(trial.key);
      this.#parts.left();
    });
  }

  /** Never rejects. */
  async #run(inHand: InHand, { gateway, config }: Generation): Promise<void> {
    const { trial, spec, sandboxes, canceling } = inHand;
    const { batches, admission } = this.#parts;
    const signal = AbortSignal.any([this.#stopped.signal, canceling.signal]);
    const admitted = AbortSignal.any([signal, this.#admitted.signal]);
    const budgets = {
      ...config.budgets,
      batch: batches.budgetOf(trial.batch, config.budgets.batch),
    };
    const parts = { ...this.#parts, attempts, gateway, sandboxes, budgets };
    try {
      const building = { sandboxes, gate: admission.builds, signal: admitted };
      await batches.built(trial.batch, trial.run, () => buildImage(spec, building));
      const observe = (event: AttemptEvent) => this.#observe(inHand, event);
      await finishTrial(spec, trial.key, parts, { signal, admitted }, observe, () => this.#begun(inHand));
    } catch (error) {
      this.#putBack(trial, admitted.aborted ? undefined : error);
    }
  }

  #begun(inHand: InHand): void {
    inHand.begun = { phase: 'sandbox', at: this.#parts.monotonic() };
    this.#parts.log.debug(namesOf(inHand.trial), 'began a trial');
    // The sandbox of the trial that will have the next place starts while this one works.
    const next = [...this.#hand.values()].find(({ begun, isAhead }) => !begun && !isAhead);
    if (!next || this.#admitted.signal.aborted) return;
    next.isAhead = true;
    next.sandboxes.startAhead(next.spec, this.#stopped.signal);
  }

  #observe(inHand: InHand, event: AttemptEvent): void {
    observeAttempt(inHand, event, this.#parts);
    // It may have failed for an image that is gone by now.
    if (event.kind === 'retried') this.#checkedImages.clear();
    if (event.kind === 'finished') this.#parts.finished();
  }

  /** Queues a trial again. With a trouble of its own no other is begun for a while: the disk is full, mostly, and none would fare better. */
  #putBack(trial: QueuedTrial, trouble: unknown): void {
    const { ledger, service } = this.#parts;
    try {
      // Of a result that could not be kept the attempt is still open.
      ledger.queue.putBack({ service, lock: daemonLock }, trial.key);
    } catch (error) {
      this.#block(trial, error);
    }
    if (trouble !== undefined) this.#block(trial, trouble);
  }

  #block(trial: QueuedTrial, error: unknown): void {
    const { log, metrics, monotonic } = this.#parts;
    const isExpected = error instanceof OffsiteError;
    const reason = messageOf(error);
    metrics.errors.inc({ of: isExpected ? 'disk' : 'daemon' });
    if (this.#blocked?.reason !== reason)
      log.error({ ...namesOf(trial), reason, err: isExpected ? undefined : error }, 'no trial is begun now');
    this.#blocked = { reason, until: monotonic() + blockedMs };
  }
}
