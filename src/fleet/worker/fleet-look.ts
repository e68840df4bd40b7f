import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { z } from 'zod';
import { casesOf, foundRun, lookAtCase, queuedOrdinals } from '../../agent/daemon/found-run.ts';
import type { PollTarget } from '../../agent/daemon/poll-targets.ts';
import type { FoundRunDetails } from '../../agent/specify.ts';
import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { foundRuns } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { runningWorkflows } from '../batch-handle.ts';
import type { FleetConnection } from '../connect.ts';
import { documentContent, type FoundDocument } from '../document.ts';
import { fleetFormat, workflowQueue } from '../format.ts';
import { foundNeeds, type Needs, queueFor, unmet, type WorkerProfile } from '../placement.ts';
import { isThere, seenWorkers } from '../seen-workers.ts';
import { damaged, type FleetStorage, hashOf, rerunName, Sha256 } from '../storage/storage.ts';
import { foundTrialWorkflow, type LookAnswer, type TargetAnswer } from '../workflow/messages.ts';
import type { Documents } from './documents.ts';
import type { LookOrder } from './orders.ts';

export interface FleetLookParts extends FoundNeedsParts {
  client: Client;
  /** The service's name in ledgers. */
  service: string;
}

/** One look at some poll targets. */
export class FleetLook {
  readonly #parts: FleetLookParts;
  readonly #order: LookOrder;
  /** Trials of the present target that wait, by reason. */
  readonly #waiting = new Map<string, number>();
  /** The ids of the trials' workflows that run. */
  readonly #open = new Set<string>();
  readonly #found: FoundNeeds;

  private constructor(order: LookOrder, parts: FleetLookParts) {
    this.#order = order;
    this.#parts = parts;
    this.#found = new FoundNeeds(order.trials.pool, parts);
  }

  /**
   * Looks for queued runs, and starts a workflow for each of their trials that a worker can run. Temporal
   * refuses a workflow whose trial was started before, so a look can be repeated, and several looks can run
   * at the same time.
   */
  static async run(order: LookOrder, parts: FleetLookParts): Promise<LookAnswer> {
    const look = new FleetLook(order, parts);
    const context = Context.current();
    const beating = setInterval(() => context.heartbeat(), order.trials.heartbeatMs / 4);
    try {
      return await look.#all(context.cancellationSignal);
    } finally {
      clearInterval(beating);
    }
  }

  async #all(signal: AbortSignal): Promise<LookAnswer> {
    const { client, fleet } = this.#parts.connection;
    const own = workflowQueue(fleet.taskQueue);
    for await (const { workflowId } of runningWorkflows(client, foundTrialWorkflow, own))
      this.#open.add(workflowId);
    const targets: TargetAnswer[] = [];
    for (const { target, known } of this.#order.targets) {
      signal.throwIfAborted();
      targets.push(await this.#target(target, known, signal));
    }
    return { targets, open: this.#open.size };
  }

  async #target(target: PollTarget, known: boolean, signal: AbortSignal): Promise<TargetAnswer> {
    const { client, clock } = this.#parts;
    const most = fleetMessages.time.look / 2;
    using deadline = startDeadline(clock, most, signal, () => tooSlow(most));
    try {
      if (target.kind === 'suite') {
        const cases = await casesOf(target.id, client, deadline.signal);
        if (cases.length <= fleetMessages.count.cases)
          return { kind: 'looked', started: 0, waiting: [], cases };
        const failure = `it has more than ${fleetMessages.count.cases} cases: name some of them instead`;
        return { kind: 'failed', failure };
      }
      this.#waiting.clear();
      let started = 0;
      const take = async (record: ListedRun<'setup'>, isWanted: boolean) => {
        const count = isWanted ? await this.#start(record, target.id) : 0;
        started += count;
        return count > 0;
      };
      await lookAtCase(target, known, { client, take }, deadline.signal);
      const waiting = [...this.#waiting].map(([reason, trials]) => ({ reason, trials }));
      return { kind: 'looked', started, waiting: waiting.slice(0, fleetMessages.count.failures) };
    } catch (error) {
      signal.throwIfAborted();
      // A failure of Temporal or of the storage is not the target's. Temporal tries the look again.
      if (!(error instanceof OffsiteError) || error.code.startsWith('FLEET_')) throw error;
      return { kind: 'failed', failure: messageOf(error).slice(0, fleetMessages.bytes.text) };
    }
  }

  /** Starts the queued trials of a run, as far as there is room. Resolves with how many it started. */
  async #start(record: ListedRun<'setup'>, caseId: string): Promise<number> {
    const { storage, service } = this.#parts;
    const { trials } = this.#order;
    const run = foundRun(record, caseId);
    const { batchId: batch, id } = run;
    const idOf = (ordinal: number) => foundTrialId(trials.taskQueue, { batch, run: id, ordinal });
    const queued = queuedOrdinals(record).filter((ordinal) => !this.#open.has(idOf(ordinal)));
    if (queued.length === 0 || this.#isBeingStarted(record, caseId)) return 0;
    const asked = await this.#found.of(run);
    if (asked.kind === 'own') return 0;
    if (asked.kind === 'waiting') {
      this.#waiting.set(asked.reason, (this.#waiting.get(asked.reason) ?? 0) + queued.length);
      return 0;
    }
    const { needs, planned } = asked;
    const room = Math.max(0, trials.window - this.#open.size);
    if (room === 0) return 0;
    const content = documentContent({
      kind: 'found',
      batch,
      service,
      run,
      setup: record.setup,
      planned,
    });
    const document = hashOf(content);
    await storage.put(document, content);
    let started = 0;
    for (const ordinal of queued.slice(0, room))
      if (await this.#startTrial({ batch, document, run: id, ordinal }, needs)) started++;
    return started;
  }

  async #startTrial(
    order: { batch: string; document: string; run: string; ordinal: number },
    needs: Needs,
  ): Promise<boolean> {
    const { client } = this.#parts.connection;
    const { taskQueue, pool, heartbeatMs, priority } = this.#order.trials;
    const queue = queueFor(taskQueue, pool, needs);
    const workflowId = foundTrialId(taskQueue, order);
    const { batch, run, ordinal } = order;
    try {
      await client.workflow.start(foundTrialWorkflow, {
        workflowId,
        taskQueue: workflowQueue(taskQueue),
        args: [order, { queue, heartbeatMs, priority }],
        // A trial whose workflow has ended well was run, though its report may still be on its way.
        workflowIdReusePolicy: 'ALLOW_DUPLICATE_FAILED_ONLY',
        workflowIdConflictPolicy: 'FAIL',
        memo: { batch, run, ordinal, pool, needs: [needs] },
      });
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
      throw error;
    }
    this.#open.add(workflowId);
    return true;
  }

  /** Whether the run may be one of a batch that `fleet run` is starting, whose workflow runs it. */
  #isBeingStarted({ startedAt }: ListedRun, caseId: string): boolean {
    const { starting, before } = this.#order;
    const at = startedAt === undefined ? undefined : Date.parse(startedAt);
    if (at !== undefined && at > before) return true;
    return starting.some(({ cases, since }) => {
      return cases.includes(caseId) && (at ?? since) >= since - foundRuns.time.clockDifference;
    });
  }
}

function tooSlow(ms: number): OffsiteError {
  return infrastructureError(
    'LOOK_TOO_SLOW',
    `the service did not list all runs within ${ms / 60_000} minutes`,
  );
}

/** A trial, by the service's ids. */
interface FoundTrial {
  batch: string;
  run: string;
  ordinal: number;
}

/**
 * The id of the workflow of a trial that the poll found: as long as Temporal knows the id, it starts the
 * trial again only if the workflow failed. Ids of a service may hold anything, so unusual ones are hashed.
 */
function foundTrialId(taskQueue: string, { batch, run, ordinal }: FoundTrial): string {
  return [taskQueue, 'found', ...[batch, run].map(named), ordinal].join('/');
}

function named(id: string): string {
  return /^[\w.-]{1,100}$/.test(id) ? id : `sha256:${hashOf(id)}`;
}

interface FoundNeedsParts {
  connection: FleetConnection;
  storage: FleetStorage;
  documents: Documents;
  clock: Clock;
  config(): Config;
  harnesses: readonly HarnessOffer[];
}

/** Whether a run's trials may be started, with the document of its batch if a fleet was given the batch. */
type RunReadiness =
  | { kind: 'ready'; needs: Needs; planned: string | undefined }
  /** The run is of a batch that has a workflow. */
  | { kind: 'own' }
  | { kind: 'waiting'; reason: string };

const BatchNote = z.object({ document: Sha256 });

/** Finds out what the runs that a look found need, and whether a worker has it. */
class FoundNeeds {
  readonly #parts: FoundNeedsParts;
  readonly #pool: string;
  /** The documents of the batches that a fleet was given, by batch. */
  readonly #planned = new Map<string, Promise<string | undefined>>();
  #there: Promise<WorkerProfile[]> | undefined;

  constructor(pool: string, parts: FoundNeedsParts) {
    this.#pool = pool;
    this.#parts = parts;
  }

  /** Resolves with whether the trials of a run may be started now, and on which workers. */
  async of(run: FoundDocument['run']): Promise<RunReadiness> {
    const { documents, config, harnesses, storage } = this.#parts;
    const { id, batchId, caseId } = run;
    const details = run.details as FoundRunDetails;
    const most = fleetMessages.bytes.foundId;
    if (id.length > most || batchId.length > most)
      return { kind: 'waiting', reason: `their ids have more than ${most} characters` };
    let planned: string | undefined;
    let needs: ReturnType<typeof foundNeeds> | undefined;
    try {
      planned = await this.#plannedOf(batchId);
      if (planned !== undefined) {
        const { runs } = await documents.planned(planned);
        // The batch's own workflow has it.
        if (runs.some((own) => own.id === id)) return { kind: 'own' };
        if ((await storage.note('reruns', rerunName(batchId, id))) !== undefined) return { kind: 'own' };
        // A run that was added to the batch runs as the batch was planned.
        needs = runs.find((own) => own.caseId === caseId && own.variantId === details.variant?.id)?.needs;
      }
    } catch (error) {
      // Without the batch's plan, it is not known whether a fleet runs the run already.
      if (!isUnreadable(error)) throw error;
      return { kind: 'waiting', reason: `the plan of their batch cannot be read: ${error.message}` };
    }
    needs ??= foundNeeds(details, config(), harnesses);
    if ('reason' in needs) return { kind: 'waiting', reason: needs.reason };
    const reason = unmet(needs, this.#pool, await this.#workers());
    return reason === undefined ? { kind: 'ready', needs, planned } : { kind: 'waiting', reason };
  }

  #workers(): Promise<WorkerProfile[]> {
    const { connection, storage, clock } = this.#parts;
    this.#there ??= seenWorkers(connection, storage, clock).then((seen) =>
      seen.flatMap((one) => (isThere(one) && one.profile?.format === fleetFormat ? one.profile : [])),
    );
    return this.#there;
  }

  #plannedOf(batch: string): Promise<string | undefined> {
    const { storage } = this.#parts;
    const known =
      this.#planned.get(batch) ?? storage.note('batches', batch).then((note) => documentIn(note, batch));
    this.#planned.set(batch, known);
    return known;
  }
}

function documentIn(note: unknown, batch: string): string | undefined {
  if (note === undefined) return undefined;
  const read = BatchNote.safeParse(note);
  if (read.success) return read.data.document;
  throw damaged(`the note of batch ${batch} in the storage`, 'it names no plan');
}

/** Whether the storage answers, but the content is missing or damaged. */
function isUnreadable(error: unknown): error is OffsiteError {
  return error instanceof OffsiteError && error.code !== 'FLEET_STORAGE_UNUSABLE';
}
