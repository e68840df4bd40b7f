import { Context } from '@temporalio/activity';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { z } from 'zod';
import { foundRun, queuedOrdinals } from '../../agent/daemon/found-run.ts';
import { casesOf, lookAtCase } from '../../agent/daemon/look.ts';
import type { PollTarget } from '../../agent/daemon/poll-targets.ts';
import type { FoundRunDetails } from '../../agent/specify.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { foundRuns } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/run-parts.ts';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import type { FleetConnection } from '../connect.ts';
import { putFoundDocument } from '../document.ts';
import { fleetFormat, workflowQueue } from '../format.ts';
import { type Needs, queueFor } from '../placement/needs.ts';
import { foundNeeds } from '../placement/planned-needs.ts';
import { unmet } from '../placement/unmet.ts';
import type { WorkerProfile } from '../placement/worker-profile.ts';
import { isThere, seenWorkers } from '../seen-workers.ts';
import { Sha256 } from '../storage/contents.ts';
import type { FleetStorage } from '../storage/storage.ts';
import {
  foundTrialId,
  foundTrialWorkflow,
  type LookAnswer,
  type LookOrder,
  type TargetAnswer,
} from '../workflow/poll-messages.ts';
import type { Documents } from './documents.ts';

export interface FleetLookParts {
  client: Client;
  connection: FleetConnection;
  storage: FleetStorage;
  documents: Documents;
  clock: Clock;
  /** The service's name in ledgers. */
  service: string;
  config(): Config;
  harnesses: readonly HarnessOffer[];
}

const BatchNote = z.object({ document: Sha256 });

/** One look at some poll targets. */
export class FleetLook {
  readonly #parts: FleetLookParts;
  readonly #order: LookOrder;
  readonly #waiting = new Map<string, number>();
  /** The ids of the trials' workflows that run. */
  readonly #open = new Set<string>();
  /** The documents of the batches that a fleet was given, by batch. */
  readonly #planned = new Map<string, Promise<string | undefined>>();
  #there: Promise<WorkerProfile[]> | undefined;

  private constructor(order: LookOrder, parts: FleetLookParts) {
    this.#order = order;
    this.#parts = parts;
  }

  /**
   * Looks for queued runs, and starts a workflow for each of their trials that a worker can run. Temporal
   * refuses a workflow whose trial was started before, so a look can be repeated, and several can go on.
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
    const query = `WorkflowType = '${foundTrialWorkflow}' AND ExecutionStatus = 'Running'`;
    for await (const { workflowId, taskQueue } of this.#parts.connection.client.workflow.list({ query }))
      if (taskQueue === workflowQueue(this.#order.trials.taskQueue)) this.#open.add(workflowId);
    const targets: TargetAnswer[] = [];
    for (const { target, known } of this.#order.targets) {
      signal.throwIfAborted();
      targets.push(await this.#target(target, known, signal));
    }
    const waiting = [...this.#waiting].map(([reason, trials]) => ({ reason, trials }));
    return { targets, open: this.#open.size, waiting: waiting.slice(0, fleetMessages.count.failures) };
  }

  async #target(target: PollTarget, known: boolean, signal: AbortSignal): Promise<TargetAnswer> {
    const { client, clock } = this.#parts;
    const most = fleetMessages.time.look / 2;
    using deadline = startDeadline(clock, most, signal, () => tooSlow(most));
    try {
      if (target.kind === 'suite') {
        const cases = await casesOf(target.id, client, deadline.signal);
        if (cases.length <= fleetMessages.count.cases) return { kind: 'looked', started: 0, cases };
        const failure = `it has more than ${fleetMessages.count.cases} cases: name some of them instead`;
        return { kind: 'failed', failure };
      }
      let started = 0;
      const take = async (record: ListedRun<'setup'>, isWanted: boolean) => {
        const count = isWanted ? await this.#start(record, target.id) : 0;
        started += count;
        return count > 0;
      };
      await lookAtCase(target, known, { client, take }, deadline.signal);
      return { kind: 'looked', started };
    } catch (error) {
      signal.throwIfAborted();
      // Temporal and the storage are not the target's. Temporal tries the look again.
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
    const planned = await this.#plannedOf(batch);
    if (planned !== undefined) {
      const { runs } = await this.#parts.documents.planned(planned);
      // The batch's own workflow has it.
      if (runs.some((own) => own.id === id)) return 0;
    }
    const needs = await this.#needsOf(run, planned);
    const reason = 'reason' in needs ? needs.reason : unmet(needs, trials.pool, await this.#workers());
    if (reason !== undefined || 'reason' in needs) {
      this.#waiting.set(reason ?? '', (this.#waiting.get(reason ?? '') ?? 0) + queued.length);
      return 0;
    }
    const room = Math.max(0, trials.window - this.#open.size);
    if (room === 0) return 0;
    const document = await putFoundDocument(
      { kind: 'found', batch, service, run, setup: record.setup, planned },
      storage,
    );
    let started = 0;
    for (const ordinal of queued.slice(0, room))
      if (await this.#startTrial({ batch, document, run: id, ordinal }, needs)) started++;
    return started;
  }

  /** A run that was added to a batch of a fleet needs what the planned runs of its case and variant need. */
  async #needsOf(
    { caseId, details }: { caseId: string; details: unknown },
    planned: string | undefined,
  ): Promise<Needs | { reason: string }> {
    const { documents, config, harnesses } = this.#parts;
    const found = details as FoundRunDetails;
    const { runs = [] } = planned === undefined ? {} : await documents.planned(planned);
    const known = runs.find((one) => one.caseId === caseId && one.variantId === found.variant?.id);
    return known?.needs ?? foundNeeds(found, config(), harnesses);
  }

  #workers(): Promise<WorkerProfile[]> {
    const { connection, storage, clock } = this.#parts;
    this.#there ??= seenWorkers(connection, storage, clock).then((seen) =>
      seen.flatMap((one) => (isThere(one) && one.profile?.format === fleetFormat ? one.profile : [])),
    );
    return this.#there;
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

  #plannedOf(batch: string): Promise<string | undefined> {
    const { storage } = this.#parts;
    const known = this.#planned.get(batch) ?? storage.note('batches', batch).then(documentIn);
    this.#planned.set(batch, known);
    return known;
  }
}

function documentIn(note: unknown): string | undefined {
  const read = BatchNote.safeParse(note);
  return read.success ? read.data.document : undefined;
}

function tooSlow(ms: number): OffsiteError {
  return new OffsiteError(`the service did not list all runs within ${ms / 60_000} minutes`, {
    code: 'LOOK_TOO_SLOW',
    kind: 'infrastructure',
  });
}
