import { daemonLock } from '../../ledger/queue.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { ConfigRevision } from '../config-revision.ts';
import type { DeliveryLoop } from '../delivery-loop.ts';
import type { Loop } from '../loop.ts';
import { Watchdog } from '../loop.ts';
import { Worker } from '../worker.ts';
import { BatchQueue } from './batch-queue.ts';
import type { DaemonEnd, DaemonParts } from './daemon-parts.ts';
import { openDelivery } from './deliver.ts';
import { HealthWatch } from './health.ts';
import { watchedLoop } from './loops.ts';
import { Metrics } from './metrics.ts';
import { observeWork } from './observe-work.ts';
import { Places } from './places.ts';
import { poll } from './poll.ts';
import type { DaemonStatus, Mode } from './status.ts';
import { statusOf } from './status-of.ts';
import { watchQueue } from './ticket.ts';

/** Attempts of a trial that fails through no fault of the agent's. */
const attempts = 3;

/**
 * Milliseconds that the last reports are waited for, and failures in a row after which they no longer are.
 */
const grace = { ms: 60_000, failures: 3 };

/** Milliseconds between two looks whether a daemon that is to end by itself has come to its end. */
const overMs = 200;

/**
 * Finds runs, claims them, runs their trials and reports them until it is told to end. All that must not be
 * lost is in the ledger: after a crash, the next daemon that uses this data folder continues.
 */
export class Daemon {
  readonly metrics = new Metrics();
  readonly #parts: DaemonParts;
  readonly #startedAt: number;
  readonly #watchdog: Watchdog;
  readonly #places: Places;
  readonly #health: HealthWatch;
  readonly #queue: BatchQueue;
  readonly #worker: Worker;
  readonly #loops: { poll: Loop; queue: Loop; work: Loop; health: Loop };
  /** Aborted when nothing more is to be begun. */
  readonly #intake = new AbortController();
  /** Aborted when reports are no longer waited for. */
  readonly #hurry = new AbortController();
  #delivery: DeliveryLoop | undefined;
  #mode: Mode = 'working';

  constructor(parts: DaemonParts) {
    const { monotonic, random, service, revisions } = parts;
    this.#parts = parts;
    this.#startedAt = monotonic();
    this.#watchdog = new Watchdog(monotonic);
    this.#places = new Places(revisions.current.config.daemon, { monotonic, random });
    const shared = { ...parts, watchdog: this.#watchdog, metrics: this.metrics };
    this.#health = new HealthWatch({ ...shared, changed: (health) => this.#healthChanged(health) });
    const wakeWork = () => this.#loops.work.wake();
    this.#worker = new Worker({
      ...parts,
      scope: { service, lock: daemonLock },
      attempts,
      // A daemon has nothing better to do than to wait.
      patienceMs: Number.POSITIVE_INFINITY,
      checks: true,
      onTrouble: 'pause',
      observe: (event) => {
        observeWork(event, shared);
        if (event.kind === 'finished') this.#delivery?.wake();
      },
      changed: wakeWork,
    });
    const look = { ...shared, places: this.#places, claimed: wakeWork };
    this.#queue = new BatchQueue({
      ...parts,
      gateway: () => revisions.current.gateway,
      started: wakeWork,
    });
    this.#loops = {
      poll: watchedLoop('poll', (signal) => poll(look, signal), shared),
      queue: watchedLoop('queue', (signal) => this.#queue.begin(signal), shared),
      work: watchedLoop('work', (signal) => this.#worker.fill(signal), shared),
      health: watchedLoop('health', (signal) => this.#health.look(signal), shared),
    };
  }

  /**
   * Works until it is told to end, or with `once` until all that there is has been run and reported.
   * Everything it made on the engine is gone then, but for what `engine` itself removes.
   */
  async run({ once }: { once: boolean }): Promise<DaemonEnd> {
    const { ledger, service, log } = this.#parts;
    const halfRun = ledger.queue.interrupt({ service, lock: daemonLock });
    if (halfRun > 0) log.info({ trials: halfRun }, 'half-run trials start afresh');
    ledger.reserve.take();
    await using opened = new AsyncDisposableStack();
    opened.use(this.#worker);
    const delivery = opened.use(
      openDelivery({ ...this.#parts, watchdog: this.#watchdog, metrics: this.metrics }),
    );
    this.#delivery = delivery;
    const stopHealth = new AbortController();
    const health = this.#loops.health.run(stopHealth.signal);
    opened.defer(async () => {
      stopHealth.abort();
      await health;
    });
    using _watching = watchQueue(ledger.dataFolder, () => this.#loops.queue.wake());
    const { poll, queue, work } = this.#loops;
    const intake = [poll, queue, work].map((loop) => loop.run(this.#intake.signal));
    if (once) intake.push(this.#drainWhenDone());
    try {
      await Promise.all(intake);
    } catch (error) {
      this.cancel();
      throw error;
    } finally {
      await this.#worker.empty();
    }
    await this.#deliverTheRest(delivery);
    return this.#end();
  }

  /**
   * Begins no trial until {@link unpause}; those that run go on. As all that can be told, answers with a line
   * for people.
   */
  pause(): string {
    if (this.#mode !== 'working') return `nothing to pause: the daemon is ${this.#mode}`;
    this.#setMode('paused');
    this.#worker.hold();
    return 'paused: trials that run go on, no other is begun';
  }

  unpause(): string {
    if (this.#mode !== 'paused') return `nothing to unpause: the daemon is ${this.#mode}`;
    this.#setMode('working');
    this.#worker.goOn();
    return 'working again';
  }

  /** Begins nothing more, and ends once the trials that run have ended and their reports are out. */
  drain(): string {
    if (this.#mode === 'working' || this.#mode === 'paused') {
      this.#setMode('draining');
      this.#worker.hold();
      this.#intake.abort(new Error('the daemon drains'));
    }
    return `${this.#mode}: ${this.#worker.running().length} trials run; the daemon ends when they have ended and are reported`;
  }

  /**
   * Ends the trials that run: what they found is kept with their attempts, and they are queued again. Ends
   * without waiting for reports.
   */
  cancel(): void {
    this.drain();
    this.#setMode('canceling');
    const reason = 'the daemon was told to stop';
    this.#worker.stop(new OffsiteError(reason, { code: 'STOPPED', kind: 'infrastructure' }));
    this.#hurry.abort(new Error('the daemon is told to hurry'));
  }

  /** Takes a run's open trials out of the queue for good. Returns how many. */
  cancelRun(runId: string): number {
    const canceled = this.#worker.cancel(runId);
    if (canceled > 0) this.#parts.log.warn({ run: runId, trials: canceled }, 'canceled a run');
    return canceled;
  }

  changeConcurrency(trials: number): string {
    this.#worker.concurrency = trials;
    this.#parts.log.info({ concurrency: trials }, 'changed the concurrency');
    return `${trials} ${trials === 1 ? 'trial' : 'trials'} at a time, until the configuration is read again`;
  }

  /**
   * Uses another revision of the configuration for all that starts from now on. Its gateway is closed with
   * the others.
   */
  change(revision: ConfigRevision): void {
    this.#parts.revisions.replace(revision);
    this.#places.change(revision.config.daemon);
    this.#worker.waiting.clear();
    this.changeConcurrency(revision.concurrency);
    this.#loops.poll.wake();
  }

  status(): DaemonStatus {
    return statusOf(this.#parts, {
      mode: this.#mode,
      startedAt: this.#startedAt,
      places: this.#places,
      metrics: this.metrics,
      health: this.#health,
      worker: this.#worker,
    });
  }

  #healthChanged({ ok, troubles }: DaemonStatus['health']): void {
    this.#parts.log.warn({ troubles }, ok ? 'all is well again' : 'not well');
    // What could not be begun while the engine was down may go now.
    this.#worker.waiting.retry();
    this.#loops.work.wake();
  }

  /** Ends the daemon once nothing is left to be begun. */
  async #drainWhenDone(): Promise<void> {
    while (!this.#intake.signal.aborted) {
      if ((await this.#queue.isOver()) && this.#places.allLooked && this.#worker.isWorkedOff) this.drain();
      else await this.#parts.clock.sleep(overMs);
    }
  }

  async #deliverTheRest(delivery: DeliveryLoop): Promise<void> {
    try {
      await delivery.drain(grace, this.#hurry.signal);
    } catch (error) {
      if (!this.#hurry.signal.aborted) throw error;
    }
  }

  #end(): DaemonEnd {
    const { finished, outbox, queued, polls: troubles } = this.status();
    const unreported = outbox.queued + outbox.parked;
    return { finished, unreported, queued, isBegun: this.#queue.isBegun, troubles };
  }

  #setMode(mode: Mode): void {
    this.#mode = mode;
    this.#parts.log.info({ mode }, `the daemon is ${mode}`);
  }
}
