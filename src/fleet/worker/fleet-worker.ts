import { join } from 'node:path';
import type { Logger } from 'pino';
import { Metrics } from '../../agent/daemon/metrics.ts';
import { Watchdog } from '../../agent/loop.ts';
import { type SenderParts, type Sent, ServiceSender } from '../../agent/sender.ts';
import { openDelivery, openWork, watchedLoop } from '../../agent/work-loop.ts';
import type { Worker } from '../../agent/worker/worker.ts';
import type { WorkEvent, WorkerParts } from '../../agent/worker/worker-parts.ts';
import { infrastructureError, messageOf } from '../../base/offsite-error.ts';
import type { Client } from '../../client/client.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import { type FleetTask, fleetLock } from '../../ledger/fleet-tasks.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { FleetConnection } from '../connect.ts';
import { Contexts } from '../contexts.ts';
import { profileOf, type WorkerProfile } from '../placement.ts';
import type { FleetStorage } from '../storage/storage.ts';
import { type TrialSummary, trialName } from '../workflow/messages.ts';
import { Documents, storeRecord } from './documents.ts';
import { FleetLook } from './fleet-look.ts';
import { Tasks } from './held-tasks.ts';
import { FollowedQueues, Polls } from './polls.ts';
import { TaskRunner } from './task-runner.ts';

export interface FleetWorkerParts
  extends Omit<
    WorkerParts,
    'scope' | 'attempts' | 'patienceMs' | 'checks' | 'onFailure' | 'observe' | 'changed'
  > {
  connection: FleetConnection;
  storage: FleetStorage;
  client: Client;
  /** The service's name in the ledger. */
  service: string;
  log: Logger;
  /** How other machines know this worker. */
  name: string;
  /** The version of Offsite. */
  version: string;
  /** Bytes for all trials together. Default: three quarters of the engine's machine. */
  memory?: number | undefined;
  /** Receives what the worker does, besides the log. */
  observe?: WorkerParts['observe'] | undefined;
}

export interface WorkerStanding {
  mode: 'starting' | 'working' | 'draining';
  /** Trials that run here. */
  running: number;
  /** Loops that are stuck. Only a new process helps. */
  stuck: string[];
}

/** How long a worker waits at its end for the last reports: milliseconds, and failures in a row. */
const grace = { ms: 60_000, failures: 3 };

/**
 * Runs trials of a fleet, and its workflows, until it is stopped. Everything that must not be lost is in the
 * ledger: after a crash, the next worker that uses this data folder delivers what is finished.
 */
export class FleetWorker {
  readonly #parts: FleetWorkerParts;
  readonly #metrics = new Metrics();
  readonly #watchdog: Watchdog;
  readonly #intake = new AbortController();
  readonly #stopNow = new AbortController();
  #running:
    | { polls: Polls; tasks: TaskRunner; worker: Worker; engine: EngineWatch; leave(): void }
    | undefined;

  /** The caller holds the lock {@link fleetLock}. */
  constructor(parts: FleetWorkerParts) {
    this.#parts = parts;
    this.#watchdog = new Watchdog(parts.clock);
  }

  /** What the worker is doing, for those who watch it. */
  standing(): WorkerStanding {
    const isDraining = this.#intake.signal.aborted;
    return {
      mode: isDraining ? 'draining' : this.#running ? 'working' : 'starting',
      running: this.#running?.worker.running().length ?? 0,
      stuck: this.#watchdog.stuck(),
    };
  }

  /**
   * Takes no more trials, and ends when the running ones have ended and are reported. Returns how many run.
   */
  drain(): number {
    const running = this.#running;
    const count = running?.worker.running().length ?? 0;
    if (this.#intake.signal.aborted) return count;
    this.#parts.log.info({ running: count }, 'the worker is draining');
    this.#intake.abort();
    running?.polls.end();
    void running?.tasks.drain();
    running?.leave();
    return count;
  }

  /** The first call drains. The second gives the running trials back at once. */
  end(): void {
    const { log } = this.#parts;
    const running = this.#running;
    const isFirst = !this.#intake.signal.aborted;
    this.drain();
    if (isFirst) return;
    log.warn('the worker gives its trials back');
    this.#stopNow.abort(infrastructureError('STOPPED', 'the worker was stopped'));
    void running?.tasks.giveBack({ isEnding: true });
  }

  /** Ends all trials that run, because the fleet has taken the permits for their model back. */
  losePermits(model: string): void {
    this.#parts.log.warn({ model }, 'the permits for a model are lost; trials go back to the fleet');
    void this.#running?.tasks.giveBack({ isEnding: false });
  }

  /** Works until {@link end} is called, and its trials have ended. Rejects if Temporal refuses the worker. */
  async run(started: (profile: WorkerProfile) => void): Promise<void> {
    const { ledger, clock, service, log, storage, connection, revisions, name } = this.#parts;
    this.#forgetTasks();
    ledger.reserve.take();
    const loops = { log, clock, metrics: this.#metrics, watchdog: this.#watchdog };
    const calls = new Tasks(connection.client);
    await using opened = new AsyncDisposableStack();
    const delivery = opened.use(
      openDelivery({
        ...loops,
        ledger,
        service,
        sender: new FleetSender({
          ledger,
          storage,
          tasks: calls,
          worker: name,
          client: this.#parts.client,
          warn: (message) => log.warn(message),
          accepted: (trial) => tasks.held.settle(trial),
        }),
        superseded: (trial) => tasks.held.settle(trial),
      }),
    );
    const { worker, work } = openWork({
      ...this.#parts,
      ...loops,
      scope: { service, lock: fleetLock },
      observe: (event) => {
        this.#parts.observe?.(event);
        tasks.held.observe(event);
        this.#running?.engine.observe(event);
      },
    });
    opened.use(worker);
    const contexts = new Contexts(join(ledger.dataFolder, 'fleet-contexts'), storage);
    await contexts.clear();
    const folderOf = (hash: string) => contexts.folderOf(hash);
    const config = () => revisions.current.config;
    const documents = new Documents({ storage, config, folderOf });
    const harnesses = this.#parts.runners;
    const tasks = new TaskRunner({
      ledger,
      storage,
      clock,
      name,
      service,
      worker,
      documents,
      contexts,
      tasks: calls,
      look: (order) => {
        const own = { connection, documents, clock, service, config, harnesses };
        return FleetLook.run(order, { ...own, storage, client: this.#parts.client });
      },
      wake: () => {
        work.wake();
        delivery.wake();
      },
    });
    const { version, engine, memory } = this.#parts;
    const { concurrency } = worker;
    const { pools } = connection.fleet;
    const profile = profileOf({
      engine,
      harnesses,
      version,
      service,
      pools,
      concurrency,
      memory,
      config: config(),
    });
    await storage.putNote('workers', name, profile);
    const polls = await Polls.open({
      connection,
      name,
      activities: tasks.activities,
      // Some more than run at a time, so that the sandboxes of the next ones start ahead.
      most: concurrency + Math.max(1, Math.ceil(concurrency / 2)),
    });
    const leave = () => {
      const note = storage.putNote('workers', name, { ...profile, ended: true });
      note.catch((error: unknown) =>
        log.warn({ reason: messageOf(error) }, 'cannot announce its end to the fleet'),
      );
    };
    const engineWatch = new EngineWatch({ worker, tasks, polls, signal: this.#stopNow.signal });
    this.#running = { polls, tasks, worker, engine: engineWatch, leave };
    const filling = new AbortController();
    const filled = work.run(filling.signal);
    const queues = new FollowedQueues({ connection, name, profile, polls, clock, log });
    const following = watchedLoop('placement', () => queues.look(), loops).run(this.#intake.signal);
    started(profile);
    if (this.#intake.signal.aborted) polls.end();
    try {
      await polls.ended();
    } finally {
      worker.stop(infrastructureError('STOPPED', 'the worker has ended'));
      filling.abort();
      await filled;
      await following;
      await worker.empty();
    }
    await delivery.drain(grace, this.#stopNow.signal).catch((error: unknown) => {
      if (!this.#stopNow.signal.aborted) throw error;
    });
  }

  /** After a start, Temporal decides again who runs what the ledger has in its queue. */
  #forgetTasks(): void {
    const { ledger, service, log } = this.#parts;
    const interrupted = ledger.queue.interrupt({ service, lock: fleetLock });
    // It has no task for any of them.
    const queued = ledger.queue.next({ service, lock: fleetLock }, -1).map(({ key }) => key);
    ledger.queue.withdraw(queued, 'elsewhere');
    if (queued.length > 0)
      log.info({ trials: queued.length, interrupted }, 'left the trials of the last start to the fleet');
  }
}

interface EngineWatchParts {
  worker: Worker;
  tasks: TaskRunner;
  polls: Polls;
  /** Ends the watch. */
  signal: AbortSignal;
}

/** While the engine does not answer, other workers run what this one holds, and it takes nothing more. */
class EngineWatch {
  readonly #parts: EngineWatchParts;
  #isDown = false;

  constructor(parts: EngineWatchParts) {
    this.#parts = parts;
  }

  observe(event: WorkEvent): void {
    const { worker, tasks, polls, signal } = this.#parts;
    if (event.kind === 'put-back')
      void worker.suspectEngine(messageOf(event.error), signal).catch(() => undefined);
    if (event.kind !== 'waiting' || !worker.isEngineDown || this.#isDown) return;
    this.#isDown = true;
    polls.hold(true);
    void tasks.engineFails(event.reason);
    const works = () => {
      this.#isDown = false;
      tasks.engineWorks();
      polls.hold(false);
    };
    // Trials that were given back cannot notice that the engine works again.
    worker.engineAnswers(signal).then(works, () => undefined);
  }
}

interface FleetSenderParts extends SenderParts {
  ledger: Ledger;
  storage: FleetStorage;
  tasks: Tasks;
  /** How other machines know this worker. */
  worker: string;
  /** Called when Temporal has accepted a trial's result. */
  accepted(trial: TrialKey): void;
}

/**
 * Hands results over in three steps, each of which can be repeated: the record to the storage, the completion
 * to Temporal, the report to the Eval Service. Only a worker whose completion was accepted reports the trial.
 */
class FleetSender extends ServiceSender {
  readonly #parts: FleetSenderParts;

  constructor(parts: FleetSenderParts) {
    super(parts);
    this.#parts = parts;
  }

  override async send(report: StoredTrial, signal: AbortSignal): Promise<Sent> {
    if (!(await this.#complete(report))) {
      const trial = trialName({ run: report.runId, ordinal: report.ordinal });
      const answer = `trial ${trial} was given to another worker, or its batch was canceled`;
      return { state: 'superseded', answer };
    }
    signal.throwIfAborted();
    return super.send(report, signal);
  }

  /** Resolves with false if the trial is another worker's. */
  async #complete(report: StoredTrial): Promise<boolean> {
    const { ledger, tasks, storage, accepted } = this.#parts;
    const { key: trial, batchId: batch, runId: run, ordinal } = report;
    const task = ledger.fleetTasks.of(trial);
    // Other commands may have filled this outbox too.
    if (!task || task.isAccepted) return true;
    const summary = await storeRecord(report, this.#parts);
    const answer = await tasks.complete(task.token, summary).catch(asOutage);
    if (answer === 'refused' && !(await this.#isOwn(report, task, summary))) return false;
    if (summary.record !== undefined)
      await storage.addResult(batch, { run, ordinal, record: summary.record });
    ledger.fleetTasks.accept(trial);
    accepted(trial);
    return true;
  }

  /**
   * Whether a refused result is nevertheless the trial's: its completion was accepted before, and the answer
   * was lost.
   */
  async #isOwn(
    { batchId, runId: run, ordinal }: StoredTrial,
    { workflow, workflowRun }: FleetTask,
    own: TrialSummary,
  ): Promise<boolean> {
    const outcome = await this.#parts.tasks
      .outcome({ workflowId: workflow ?? batchId, runId: workflowRun }, trialName({ run, ordinal }))
      .catch(asOutage);
    return outcome?.record === own.record && outcome?.worker === own.worker;
  }
}

function asOutage(error: unknown): never {
  throw infrastructureError(
    'FLEET_UNREACHABLE',
    `the Temporal server did not take a result: ${messageOf(error)}`,
    { cause: error },
  );
}
