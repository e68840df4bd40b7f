import type { Logger } from 'pino';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, isExpected } from '../../base/offsite-error.ts';
import type { Client } from '../../client/client.ts';
import { daemonLock } from '../../ledger/queue.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { Claims } from '../claims.ts';
import type { ConfigRevision } from '../config-revision.ts';
import type { Delivery } from '../delivery.ts';
import { addressesOf, areSeveral } from '../engines/check.ts';
import { Loop, Watchdog } from '../loop.ts';
import { leaveEnded } from '../reconcile.ts';
import type { Sender } from '../sender.ts';
import { beginWork, openDelivery, openWork, watchedLoop } from '../work-loop.ts';
import type { Worker } from '../worker/worker.ts';
import type { WorkerParts } from '../worker/worker-parts.ts';
import { BatchQueue } from './batch-queue.ts';
import { HealthWatch } from './health.ts';
import { Metrics } from './metrics.ts';
import { type NamedRuns, namedRuns } from './named-runs.ts';
import { poll } from './poll.ts';
import { PollTargets } from './poll-targets.ts';
import { type DaemonStatus, drainText, type Mode, nothingListed } from './status.ts';
import { queuedFiles, refusedTickets, watchQueue } from './ticket.ts';

/** How long the daemon waits for the last reports: milliseconds, and failed deliveries in a row. */
const grace = { ms: 60_000, failures: 3 };

/** Milliseconds that canceled trials may take to end while a command waits for them. */
const letGoMs = 30_000;

/** Milliseconds for the service to say what of canceled trials had ended elsewhere. */
const endedMs = 5_000;

/** Milliseconds between two checks whether a daemon with `once` is done. */
const overMs = 200;

/**
 * Finds runs, claims them, runs their trials and reports them until it is stopped. Everything that must
 * not be lost is in the ledger: after a crash, the next daemon that uses this data folder continues.
 */
export class Daemon {
  readonly metrics = new Metrics();
  readonly #parts: DaemonParts;
  readonly #startedAt: number;
  readonly #watchdog: Watchdog;
  readonly #pollTargets: PollTargets;
  readonly #health: HealthWatch;
  readonly #queue: BatchQueue;
  readonly #worker: Worker;
  readonly #loops: { poll: Loop; queue: Loop; work: Loop; health: Loop };
  /** Aborted when the daemon must start nothing more. */
  readonly #intake = new AbortController();
  /** Aborted when the daemon must no longer wait for reports. */
  readonly #stopNow = new AbortController();
  #delivery: Delivery | undefined;
  #mode: Mode = 'working';
  /** What the log says of the mode. */
  #said = '';

  constructor(parts: DaemonParts) {
    const { clock, random, service, revisions } = parts;
    this.#parts = parts;
    this.#startedAt = clock.monotonic();
    this.#watchdog = new Watchdog(clock);
    this.#pollTargets = new PollTargets(revisions.current.config.daemon, { clock, random });
    const shared = { ...parts, watchdog: this.#watchdog, metrics: this.metrics };
    this.#health = new HealthWatch({ ...shared, changed: (health) => this.#healthChanged(health) });
    const { worker, work } = openWork({
      ...shared,
      scope: { service, lock: daemonLock },
      observe: (event) => {
        parts.observe?.(event);
        if (event.kind === 'finished') this.#delivery?.wake();
      },
    });
    this.#worker = worker;
    const wakeWork = () => work.wake();
    const failed = () => {
      this.#health.suspectService();
      this.#loops.health.wake();
    };
    const targets = this.#pollTargets;
    const lost = () => this.#delivery?.compare();
    const look = { ...shared, targets, unclear: new Set<string>(), adopted: wakeWork, failed, lost };
    this.#queue = new BatchQueue({
      ...parts,
      revision: () => revisions.current,
      started: wakeWork,
    });
    this.#loops = {
      poll: watchedLoop('poll', (signal) => poll(look, signal), shared),
      queue: watchedLoop('queue', (signal) => this.#queue.begin(signal), shared),
      work,
      health: watchedLoop('health', (signal) => this.#health.look(signal), shared),
    };
  }

  /**
   * Works until it is stopped, or with `once` until everything it found has run and is reported. Then
   * everything it made on the engine is removed, except what `engine` removes itself.
   */
  async run({ once }: { once: boolean }): Promise<DaemonEnd> {
    const { ledger, service, log } = this.#parts;
    beginWork({ ledger, log, scope: { service, lock: daemonLock } });
    await using opened = new AsyncDisposableStack();
    opened.use(this.#worker);
    const delivery = opened.use(
      openDelivery({
        ...this.#parts,
        watchdog: this.#watchdog,
        metrics: this.metrics,
        compared: (again) => {
          if (again > 0) this.#loops.work.wake();
        },
      }),
    );
    this.#delivery = delivery;
    // What an earlier process was refused, this one may be allowed: it may have another key.
    delivery.retry();
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
    await this.#deliverRemaining(delivery);
    return this.#end(delivery);
  }

  /**
   * Starts no trial until {@link unpause}; running trials continue. Like every command, it returns a line for
   * people.
   */
  pause(): string {
    if (this.#mode !== 'working') return `nothing to pause: the daemon is ${this.#mode}`;
    this.#setMode('paused');
    this.#worker.hold();
    return 'paused: running trials continue, no other trial starts';
  }

  unpause(): string {
    if (this.#mode !== 'paused') return `nothing to resume: the daemon is ${this.#mode}`;
    this.#setMode('working');
    this.#worker.resume();
    return 'working again';
  }

  /** Starts nothing more, lets the running trials end, reports them if the service answers, and ends. */
  drain(): string {
    if (this.#mode === 'working' || this.#mode === 'paused') {
      this.#setMode('draining');
      this.#worker.hold();
      this.#intake.abort(new Error('the daemon drains'));
    }
    return `${this.#mode}: ${drainText(this.status(), grace.ms)}`;
  }

  /**
   * Ends the running trials: their attempts keep what they found, and the trials are queued again. Ends
   * without waiting for reports.
   */
  cancel(): void {
    this.drain();
    this.#parts.beginEnding();
    this.#setMode('canceling');
    const reason = 'the daemon was stopped';
    this.#worker.stop(infrastructureError('STOPPED', reason));
    this.#stopNow.abort(new Error('the daemon was stopped'));
  }

  /**
   * Removes the open trials of a batch, of a run, or of a suite's only open batch from the queue. Resolves
   * with how many there were, without those that had ended elsewhere, or with why nothing was canceled.
   */
  async cancelNamed(name: string): Promise<(NamedRuns & { canceled: number; ended: number }) | string> {
    const { ledger, service, log } = this.#parts;
    const named = namedRuns(ledger, service, name);
    if (typeof named === 'string') return named;
    const { kind, id, runs } = named;
    const open = runs.flatMap(({ runId }) => ledger.queue.openTrials({ service, lock: daemonLock }, runId));
    for (const { runId } of runs) this.#worker.cancel(runId);
    const ended = await this.#leaveEnded(open.filter(({ state }) => state === 'queued'));
    const canceled = open.length - ended;
    log.warn({ [kind]: id, trials: canceled, ended }, `canceled a ${kind}`);
    return { ...named, canceled, ended };
  }

  /** Leaves what had ended elsewhere, unless the service does not say it soon. Resolves with how many. */
  async #leaveEnded(canceled: readonly StoredTrial[]): Promise<number> {
    using deadline = startDeadline(this.#parts.clock, endedMs);
    try {
      return (await leaveEnded(canceled, this.#parts, deadline.signal)).length;
    } catch (error) {
      if (deadline.expired() || isExpected(error)) return 0;
      throw error;
    }
  }

  /**
   * Cancels a batch or run, by its whole id, so that another process of this data folder can end it. Resolves
   * with whether none of its trials is in flight any more: an engine that hangs may keep one.
   */
  async letGo(id: string): Promise<boolean> {
    const { ledger, service, clock, log } = this.#parts;
    const open = ledger.queue.openRuns({ service, lock: daemonLock });
    const runs = open.filter(({ batchId, runId }) => [batchId, runId].includes(id));
    for (const { runId } of runs) this.#worker.cancel(runId);
    log.warn({ id, runs: runs.length }, 'let go of a batch or run');
    using deadline = startDeadline(clock, letGoMs);
    return await Promise.race([this.#worker.left(id).then(() => true), deadline.reached.then(() => false)]);
  }

  changeConcurrency(trials: number): string {
    this.#worker.concurrency = trials;
    this.#parts.log.info({ concurrency: trials }, 'changed the concurrency');
    return `${trials} ${trials === 1 ? 'trial' : 'trials'} at a time, until the configuration is read again`;
  }

  /** Uses another config revision for everything that starts from now on. `revisions` closes its gateway. */
  change(revision: ConfigRevision): void {
    this.#parts.revisions.replace(revision);
    this.#pollTargets.change(revision.config.daemon);
    this.#worker.waiting.clear();
    this.changeConcurrency(revision.concurrency);
    this.#loops.poll.wake();
  }

  status(): DaemonStatus {
    const { ledger, service, clock, revisions } = this.#parts;
    const { oldestAt, nextAt: _, ...reports } = ledger.outbox.standing(service);
    const scope = { service, lock: daemonLock };
    const worker = this.#worker;
    const targets = this.#pollTargets;
    const comparedAt = this.#delivery?.comparedAt;
    const status: DaemonStatus = {
      pid: process.pid,
      mode: this.#mode,
      blocked: worker.blocked,
      upMs: Math.round(clock.monotonic() - this.#startedAt),
      service,
      engine: addressesOf(this.#parts),
      ...(areSeveral(this.#parts) && { engines: worker.engines() }),
      dataFolder: ledger.dataFolder,
      concurrency: worker.concurrency,
      queued: ledger.queue.count(scope),
      queuedRuns: ledger.queue.runs(scope, 100),
      ...worker.status(),
      refused: refusedTickets(ledger.dataFolder),
      unstarted: queuedFiles(ledger.dataFolder),
      finished: { ...this.metrics.counts },
      limits: revisions.current.gateway
        .limits()
        .map(({ name, limit, most, wanted }) => ({ model: name, limit, most, inFlight: wanted })),
      outbox: { ...reports, oldestMs: oldestAt && Math.max(0, clock.now() - oldestAt) },
      comparedMs: comparedAt === undefined ? undefined : Math.round(clock.monotonic() - comparedAt),
      polls: [
        ...targets.failures.map(({ target, failure }) => ({ place: target, trouble: failure })),
        ...targets.empty.map((target) => ({ place: target, trouble: nothingListed })),
      ],
      health: this.#health.health,
      residentBytes: process.memoryUsage.rss(),
    };
    return this.#mode === 'draining' ? { ...status, waitsFor: drainText(status, grace.ms) } : status;
  }

  #healthChanged({ ok, troubles }: DaemonStatus['health']): void {
    this.#parts.log.warn({ troubles }, ok ? 'all is well again' : 'not well');
    // Runs that could not start while the engine was down may start now.
    this.#worker.waiting.retry();
    this.#loops.work.wake();
    // After an outage, others claim again what has no result yet, although it is finished here.
    this.#delivery?.retry();
    // The service that answers again may have been restored from a backup.
    if (ok) this.#delivery?.compare();
  }

  /** Ends the daemon when nothing is left to start. */
  #drainWhenDone(): Promise<void> {
    const step = async () => {
      const isPolled = this.#pollTargets.allPolled && this.#health.isAsked;
      if ((await this.#queue.isOver()) && isPolled && this.#worker.isWorkedOff) this.drain();
      return overMs;
    };
    return new Loop({ name: 'once', clock: this.#parts.clock, step }).run(this.#intake.signal);
  }

  async #deliverRemaining(delivery: Delivery): Promise<void> {
    this.#logMode();
    try {
      await delivery.drain(grace, this.#stopNow.signal);
    } catch (error) {
      if (!this.#stopNow.signal.aborted) throw error;
    }
  }

  #end({ isCompared }: Delivery): DaemonEnd {
    const { finished, outbox, queued } = this.status();
    const pollFailures = this.#pollTargets.failures;
    const unreported = outbox.queued + outbox.sent + outbox.parked;
    const { isBegun, refused } = this.#queue;
    const { refusal } = this.#health;
    return { finished, unreported, isCompared, queued, refused, isBegun, pollFailures, refusal };
  }

  #setMode(mode: Mode): void {
    this.#mode = mode;
    this.#logMode();
  }

  #logMode(): void {
    const { mode, waitsFor, running } = this.status();
    const trials = waitsFor && running.map(({ case: id, run, ordinal }) => `${id} · ${run} #${ordinal}`);
    const waits = waitsFor === undefined ? '' : `: ${waitsFor}`;
    const message = `the daemon is ${mode}${waits}`;
    if (message !== this.#said) this.#parts.log.info({ mode, trials }, message);
    this.#said = message;
  }
}

/** What a daemon is made of. Its creator holds the data folder's lock for daemons. */
export interface DaemonParts
  extends Pick<
    WorkerParts,
    | 'engine'
    | 'moreEngines'
    | 'lateEngines'
    | 'runners'
    | 'ledger'
    | 'clock'
    | 'random'
    | 'extraCertificates'
    | 'revisions'
  > {
  client: Client;
  sender: Sender;
  /** The service's name in the ledger. */
  service: string;
  claims: Claims;
  log: Logger;
  /** Called when the daemon ends its running trials. From then on, nothing may wait longer than it must. */
  beginEnding(): void;
  /** Called every few seconds while no loop is stuck. */
  alive(): Promise<void>;
  /** Receives what the worker does, besides the log. */
  observe?: WorkerParts['observe'];
}

/** How a daemon ended. */
export interface DaemonEnd {
  finished: DaemonStatus['finished'];
  /** Results that the service does not show. */
  unreported: number;
  /** Whether the service's records could be read. */
  isCompared: boolean;
  /** Trials that are still queued: those of waiting and parked runs, and those that were queued again. */
  queued: number;
  /** How many files of the queue were refused, and why the last one was. */
  refused: { files: number; last: string | undefined };
  /** Whether every other batch in the queue could be started. */
  isBegun: boolean;
  /** The poll targets whose last poll failed. */
  pollFailures: { target: string; failure: string }[];
  /** Why the service refuses the key, or claims with it. */
  refusal: string | undefined;
}
