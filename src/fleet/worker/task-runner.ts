import { ApplicationFailure, activityInfo, CompleteAsyncError } from '@temporalio/activity';
import { NotClaimed } from '../../agent/claims.ts';
import type { Clock } from '../../base/clock.ts';
import { firstThrown, infrastructureError, OffsiteError } from '../../base/offsite-error.ts';
import { trialOf } from '../../ledger/trial-rows.ts';
import type { Contexts } from '../contexts.ts';
import type { FleetDocument, TrialDocument } from '../document.ts';
import type { FleetStorage } from '../storage/storage.ts';
import type { FleetActivities, TrialSummary } from '../workflow/messages.ts';
import { type Documents, placedTrials, storeRecord } from './documents.ts';
import { HeldTasks, type HeldTasksParts, type TaskEnd, TaskHold, type Tasks } from './held-tasks.ts';
import {
  enterFoundTrial,
  enterTrial,
  type GivenTask,
  LookOrder,
  PageOrder,
  shortestHeartbeatMs,
  TrialOrder,
} from './orders.ts';

export interface TaskRunnerParts extends HeldTasksParts {
  storage: FleetStorage;
  documents: Documents;
  contexts: Contexts;
  tasks: Tasks;
  clock: Clock;
  /** The service's name in the ledger. */
  service: string;
  /** Finds runs that somebody else queued. */
  look: FleetActivities['offsiteLook'];
}

/** Milliseconds until a trial that a worker declined is offered again. */
const againMs = 10_000;

/**
 * The activities of a worker. A trial's activity puts it into the ledger's queue and waits; the worker of
 * this process runs it, and the delivery of the outbox completes it.
 */
export class TaskRunner {
  readonly held: HeldTasks;
  readonly #parts: TaskRunnerParts;
  #isDraining = false;
  #engineTrouble: string | undefined;

  constructor(parts: TaskRunnerParts) {
    this.#parts = parts;
    this.held = new HeldTasks(parts);
  }

  readonly activities: FleetActivities = {
    offsiteTrial: (order) => this.#trial(TrialOrder.parse(order)),
    offsiteTrialPage: async (given) => {
      const order = PageOrder.parse(given);
      return placedTrials(await this.#parts.documents.planned(order.document), order);
    },
    offsiteLook: (order) => this.#parts.look(LookOrder.parse(order)),
  };

  /** Gives back the trials that do not run, and those that arrive from now on. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.held.giveBack('queued', 'this worker ends');
  }

  /** Gives back all trials, including those that run. Takes no others if this worker ends. */
  async giveBack({ isEnding }: { isEnding: boolean }): Promise<void> {
    this.#isDraining ||= isEnding;
    const reason = this.#isDraining ? 'this worker ends' : 'this worker lost its permits for the model';
    await this.held.giveBack('all', reason);
  }

  /**
   * Gives back the trials that never ran here, and those that arrive from now on. Others stay, because what
   * is left of their sandboxes cannot be ended.
   */
  async engineFails(reason: string): Promise<void> {
    this.#engineTrouble = `the engine of this worker does not answer: ${reason}`;
    await this.held.giveBack('new', this.#engineTrouble);
  }

  engineWorks(): void {
    this.#engineTrouble = undefined;
  }

  async #trial(order: TrialOrder): Promise<TrialSummary> {
    const { tasks, clock } = this.#parts;
    const { taskToken: token, heartbeatTimeoutMs: heartbeatMs = 60_000, workflowExecution } = activityInfo();
    if (heartbeatMs < shortestHeartbeatMs)
      throw declined(`a heartbeat of ${heartbeatMs} ms is too short`, true, 0);
    if (this.#isDraining) throw declined('this worker ends', false, 0);
    if (this.#engineTrouble !== undefined) throw declined(this.#engineTrouble, false, 0);
    const beat = (phase: string, withinMs: number) => tasks.beat(token, phase, withinMs);
    const { workflowId: workflow, runId: workflowRun = '' } = workflowExecution ?? {};
    const task = { token, workflow, workflowRun };
    const ended = await this.#taken(order, { beat, heartbeatMs, clock }, task);
    switch (ended.kind) {
      case 'known':
        return ended.summary;
      case 'declined': {
        // Others can run it now.
        const isOwnTrouble = this.#isDraining || this.#engineTrouble !== undefined;
        throw declined(ended.reason, ended.forGood, isOwnTrouble ? 0 : againMs);
      }
      case 'canceled':
        await tasks.canceled(token);
        throw new CompleteAsyncError();
      case 'settled':
        // The SDK must not answer for a task that the outbox completes.
        throw new CompleteAsyncError();
    }
  }

  async #taken(
    order: TrialOrder,
    holdParts: Parameters<typeof TaskHold.take>[0],
    task: GivenTask,
  ): Promise<TaskEnd> {
    try {
      using hold = await TaskHold.take(holdParts);
      return await this.#run(order, hold, task);
    } catch (caught) {
      const error = firstThrown(caught);
      if (error instanceof NotClaimed) return { kind: 'settled' };
      if (error instanceof OffsiteError)
        return { kind: 'declined', reason: error.message, forGood: error.kind === 'input' };
      throw error;
    }
  }

  async #run(order: TrialOrder, hold: TaskHold, task: GivenTask): Promise<TaskEnd> {
    const { documents, service, name } = this.#parts;
    const document = await documents.get(order.document);
    if (document.service !== service) throw otherService(document.service, service);
    // A fleet need not have been given the batch of a run that was found.
    const own = document.kind === 'found' ? document.planned : order.document;
    const planned = own === undefined ? undefined : await documents.planned(own);
    if (planned) await this.#bringContexts(order, document, planned);
    const trial = await this.#enter(order, document, planned, task);
    hold.lost.throwIfAborted();
    if (trial.state === 'finished' && trial.report !== 'queued') {
      // It was completed and reported before, and Temporal has lost that.
      return { kind: 'known', summary: await storeRecord(trial, { ...this.#parts, worker: name }) };
    }
    return this.held.until(trial.key, hold);
  }

  async #bringContexts(
    { run }: TrialOrder,
    document: TrialDocument,
    { runs, plan, contexts = {} }: FleetDocument,
  ): Promise<void> {
    const { caseId } = document.kind === 'found' ? document.run : (runs.find(({ id }) => id === run) ?? {});
    const planned = plan.cases.find(({ request }) => request.id === caseId);
    if (planned) await this.#parts.contexts.bring(planned, contexts);
  }

  /** Enters a trial when an earlier task for it has ended here. */
  async #enter(
    order: TrialOrder,
    document: TrialDocument,
    planned: FleetDocument | undefined,
    task: GivenTask,
  ) {
    const { ledger } = this.#parts;
    const { records, foundRuns } = ledger;
    for (;;) {
      const run = foundRuns.find(document.service, order.batch, order.run);
      const known = run === undefined ? undefined : trialOf(records, run, order.ordinal);
      const earlier = this.held.endOf(known?.key);
      if (!earlier) {
        return document.kind === 'found'
          ? enterFoundTrial(order, { ...document, planned }, task, ledger)
          : enterTrial(order, document, task, ledger);
      }
      await earlier;
    }
  }
}

function declined(message: string, nonRetryable: boolean, nextRetryDelay: number): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: 'Declined',
    nonRetryable,
    ...(nextRetryDelay > 0 && { nextRetryDelay }),
  });
}

function otherService(theirs: string, own: string): OffsiteError {
  return infrastructureError(
    'FLEET_OTHER_SERVICE',
    `the batch belongs to the service ${theirs}, and this worker to ${own}`,
    { hint: 'All machines of a fleet need the same service in offsite.yaml.' },
  );
}
