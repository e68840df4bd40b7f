import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { z } from 'zod';
import { casesOf, foundRun, lookAtCase, queuedOrdinals } from '../../agent/daemon/found-run.ts';
import { type PollTarget, PollTargets } from '../../agent/daemon/poll-targets.ts';
import type { FoundRunDetails } from '../../agent/specify.ts';
import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { infrastructureError, inputError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
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
import { foundTrialWorkflow, type PollState, pollId, pollQuery } from '../workflow/messages.ts';
import type { Documents } from './documents.ts';
import { type PollOrder, Starting } from './orders.ts';

/**
 * Milliseconds. In the first looks, the service must have started a run at least this long ago: somebody may
 * still be starting the batch of a newer run.
 */
const settledMs = 10_000;

export interface FleetPollParts extends FoundNeedsParts {
  client: Client;
  /** The service's name in ledgers. */
  service: string;
  random(): number;
}

/**
 * Polls the service for queued runs, and starts a workflow for each of their trials that a worker can run.
 * Temporal refuses a workflow whose trial was started before, so another worker can begin anew at any moment.
 */
export class FleetPoll {
  readonly #parts: FleetPollParts;
  readonly #order: PollOrder;
  readonly #targets: PollTargets;
  #started: number;
  #lookedAt: number | undefined;
  /** How many trials of each target wait, by reason. */
  readonly #waiting = new Map<string, Map<string, number>>();
  /** The ids of the trials' workflows that run. */
  readonly #open = new Set<string>();
  #found: FoundNeeds;

  /** @param started trials that the poll has started on other workers */
  constructor(order: PollOrder, started: number, parts: FleetPollParts) {
    const { suites, cases, every, trials } = order;
    this.#order = order;
    this.#parts = parts;
    this.#started = started;
    this.#targets = new PollTargets({ suites, cases, poll: every }, parts);
    this.#found = new FoundNeeds(trials.pool, parts);
  }

  state(): PollState {
    const { service, suites, cases, since, trials } = this.#order;
    const waiting = new Map<string, number>();
    for (const [reason, count] of [...this.#waiting.values()].flatMap((one) => [...one]))
      waiting.set(reason, (waiting.get(reason) ?? 0) + count);
    const most = fleetMessages.count.failures;
    return {
      service,
      suites,
      cases,
      since,
      pool: trials.pool,
      targets: this.#targets.size,
      started: this.#started,
      lookedAt: this.#lookedAt,
      waiting: [...waiting].slice(0, most).map(([reason, trials]) => ({ reason, trials })),
      failures: this.#targets.failures.slice(0, most),
    };
  }

  /** Looks at the targets that are due. Resolves with the milliseconds until the next look. */
  async look(signal: AbortSignal): Promise<number> {
    const { connection, clock } = this.#parts;
    const { trials, every } = this.#order;
    const due = this.#targets.due(every.min, fleetMessages.count.targets);
    if (due.length > 0) {
      this.#open.clear();
      for await (const { workflowId, taskQueue } of runningWorkflows(connection.client, foundTrialWorkflow))
        if (taskQueue === workflowQueue(trials.taskQueue)) this.#open.add(workflowId);
      this.#found = new FoundNeeds(trials.pool, this.#parts);
    }
    for (const { target, known } of due) {
      signal.throwIfAborted();
      await this.#target(target, known, signal);
      this.#lookedAt = clock.now();
    }
    return this.#targets.next()?.inMs ?? every.max;
  }

  async #target(target: PollTarget, known: boolean, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#parts;
    const targets = this.#targets;
    const most = fleetMessages.time.look;
    using deadline = startDeadline(clock, most, signal, () => tooSlow(most));
    const before = this.#started + targets.size;
    try {
      if (target.kind === 'suite') {
        const cases = await casesOf(target.id, client, deadline.signal);
        const count = fleetMessages.count.cases;
        if (cases.length > count)
          throw inputError('SUITE_TOO_LARGE', `it has more than ${count} cases: name some of them instead`);
        for (const id of cases) targets.add({ kind: 'case', id, suite: target.id });
      } else {
        const waiting = new Map<string, number>();
        const take = async (record: ListedRun<'setup'>, isWanted: boolean) => {
          const count = isWanted ? await this.#start(record, target.id, waiting) : 0;
          this.#started += count;
          return count > 0;
        };
        await lookAtCase(target, known, { client, take }, deadline.signal);
        this.#waiting.set(JSON.stringify(target), waiting);
      }
      targets.polled(target, this.#started + targets.size > before ? 'something' : 'nothing');
    } catch (error) {
      signal.throwIfAborted();
      // A failure of Temporal or of the storage is not the target's. Temporal tries the poll again.
      if (!(error instanceof OffsiteError) || error.code.startsWith('FLEET_')) throw error;
      targets.failed(target, messageOf(error).slice(0, fleetMessages.bytes.text));
    }
  }

  /**
   * Starts the queued trials of a run, as far as there is room. Resolves with how many it started.
   *
   * @param waiting receives how many trials wait for which reason
   */
  async #start(record: ListedRun<'setup'>, caseId: string, waiting: Map<string, number>): Promise<number> {
    const { storage, service } = this.#parts;
    const { trials } = this.#order;
    const run = foundRun(record, caseId);
    const { batchId: batch, id } = run;
    const idOf = (ordinal: number) => foundTrialId(trials.taskQueue, { batch, run: id, ordinal });
    const queued = queuedOrdinals(record).filter((ordinal) => !this.#open.has(idOf(ordinal)));
    // Asked before the notes of batches, which are written before a start is over.
    if (queued.length === 0 || (await this.#isBeingStarted(record, caseId))) return 0;
    const asked = await this.#found.of(run);
    if (asked.kind === 'own') return 0;
    if (asked.kind === 'waiting') {
      waiting.set(asked.reason, (waiting.get(asked.reason) ?? 0) + queued.length);
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
  async #isBeingStarted({ startedAt }: ListedRun, caseId: string): Promise<boolean> {
    const { connection, clock } = this.#parts;
    const at = startedAt === undefined ? undefined : Date.parse(startedAt);
    const now = clock.now();
    // A start that began before this poll did has not announced itself.
    if (at !== undefined && now < this.#order.since + settledMs && at > now - settledMs) return true;
    const workflow = connection.client.workflow.getHandle(pollId(connection.fleet.taskQueue));
    const starting = Starting.array().parse(await workflow.query(pollQuery));
    return starting.some(({ cases, since, until }) => {
      const isMeant = until > now && cases.includes(caseId);
      return isMeant && (at ?? since) >= since - foundRuns.time.clockDifference;
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
