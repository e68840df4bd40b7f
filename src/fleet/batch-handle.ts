import { randomUUID } from 'node:crypto';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowExecutionInfo,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';
import type { Clock } from '../base/clock.ts';
import { pause } from '../base/deadline.ts';
import { inputError, messageOf } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import type { FleetConnection } from './connect.ts';
import { workflowQueue } from './format.ts';
import type { Starting } from './worker/orders.ts';
import {
  type BatchOutcome,
  type BatchProgress,
  type PollInput,
  type PollState,
  pollId,
  pollQuery,
  pollSignals,
  pollWorkflow,
  queries,
  signals,
  totalOf,
} from './workflow/messages.ts';

/** A trial that a worker holds, as Temporal reports it. */
export interface HeldTrial {
  trial: string;
  phase: string | undefined;
  worker: string;
  /** From 1. */
  attempt: number;
  /** Why the attempt before this one ended. */
  lastFailure: string | undefined;
}

export interface BatchStanding {
  /** `CONTINUED_AS_NEW` is never seen: the newest run of the workflow is asked. */
  status: string;
  memo: Record<string, unknown>;
  /** Trials that are scheduled or held, in no order. */
  open: HeldTrial[];
}

/** `PENDING_ACTIVITY_STATE_SCHEDULED` of Temporal's API: no worker has it. */
const scheduled = 1;

/** A position after all results. */
const allSeen = Number.MAX_SAFE_INTEGER;

/** A batch of the fleet. All methods throw `FLEET_BATCH_UNKNOWN` if the server has no such batch. */
export class BatchHandle {
  readonly id: string;
  readonly #client: Client;

  constructor(id: string, client: Client) {
    this.id = id;
    this.#client = client;
  }

  async standing(): Promise<BatchStanding> {
    const { status, memo = {}, raw } = await this.#known(() => this.#workflow.describe());
    const slices = (raw.pendingChildren ?? []).map(async ({ workflowId }) => {
      // It may have ended since.
      const described = await this.#within(() => this.#slice(workflowId ?? '').describe()).catch(unlessKnown);
      return described?.raw.pendingActivities ?? [];
    });
    const pending = [raw.pendingActivities ?? [], ...(await Promise.all(slices))].flat();
    const open = pending.map(async ({ activityType, activityId, heartbeatDetails, ...rest }) => {
      if (activityType?.name !== 'offsiteTrial') return [];
      const { state, lastWorkerIdentity, attempt, lastFailure } = rest;
      return {
        trial: activityId ?? '',
        // Between two attempts, the server still has the last attempt's details.
        phase: state === scheduled ? undefined : await this.#phaseIn(heartbeatDetails?.payloads ?? []),
        worker: lastWorkerIdentity ?? '',
        attempt: attempt ?? 1,
        lastFailure: lastFailure?.message ?? undefined,
      };
    });
    return { status: status.name, memo, open: (await Promise.all(open)).flat() };
  }

  /**
   * What the whole batch has done, with the results that `seen` does not have yet: some at a time. Throws if
   * no worker answers in time: workers run the workflows.
   *
   * @param seen how many results of each workflow are known; this call updates it. Without it, none are
   * returned
   */
  async progress(seen?: Map<string, number>): Promise<BatchProgress> {
    const whole = await this.#known(() => this.#ask(this.#workflow, seen));
    for (const { id, isOpen } of whole.slices ?? []) {
      if (!isOpen && (!seen || seen.get(id) === allSeen)) continue;
      // A slice that ended some time ago may have left the server.
      const part = await this.#ask(this.#slice(id), seen).catch(unlessKnown);
      whole.results.push(...(part?.results ?? []));
      if (isOpen && part) add(whole, part);
      if (!isOpen && (!part || part.results.length === 0)) seen?.set(id, allSeen);
    }
    return whole;
  }

  /** Waits for the end of the batch. Rejects if it was canceled, or failed. */
  outcome(): Promise<BatchOutcome> {
    return this.#workflow.result() as Promise<BatchOutcome>;
  }

  async pause(): Promise<void> {
    await this.#known(() => this.#workflow.signal(signals.pause));
  }

  async unpause(): Promise<void> {
    await this.#known(() => this.#workflow.signal(signals.unpause));
  }

  /** Ends the trials that run, and schedules no others. */
  async cancel(): Promise<void> {
    await this.#known(() => this.#workflow.cancel());
  }

  get #workflow() {
    return this.#slice(this.id);
  }

  #slice(id: string): WorkflowHandle {
    return this.#client.workflow.getHandle(id);
  }

  async #ask(workflow: WorkflowHandle, seen: Map<string, number> | undefined): Promise<BatchProgress> {
    const { workflowId: id } = workflow;
    const after = seen ? (seen.get(id) ?? 0) : allSeen;
    const answer = await this.#within(() => workflow.query<BatchProgress, [number]>(queries.progress, after));
    const last = answer.results.at(-1);
    if (last) seen?.set(id, last.position);
    return answer;
  }

  #within<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return this.#client.withDeadline(Date.now() + fleetMessages.time.call, ask);
  }

  async #known<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#within(ask);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      throw inputError('FLEET_BATCH_UNKNOWN', `the fleet has no batch ${this.id} in progress`, {
        hint: '`offsite fleet status` lists the batches. Finished ones leave Temporal after some days.',
        cause: error,
      });
    }
  }

  /** The phase in the details of a heartbeat; undefined if there are none that can be read. */
  async #phaseIn(payloads: object[]): Promise<string | undefined> {
    const { payloadCodecs, payloadConverter } = this.#client.options.loadedDataConverter;
    try {
      let decoded = payloads;
      for (const codec of payloadCodecs.toReversed()) decoded = await codec.decode(decoded);
      const [details] = decoded.map((payload) => payloadConverter.fromPayload<{ phase?: unknown }>(payload));
      return typeof details?.phase === 'string' ? details.phase.slice(0, 40) : undefined;
    } catch {
      return undefined;
    }
  }
}

function unlessKnown(error: unknown): undefined {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

function add(whole: BatchProgress, part: BatchProgress): void {
  Object.assign(whole, { ...totalOf([whole, part]), outOfBudget: whole.outOfBudget });
  for (const { queue, trials } of part.queues) {
    const known = whole.queues.find((one) => one.queue === queue);
    if (known) known.trials += trials;
    else whole.queues.push({ queue, trials });
  }
}

/**
 * The workflows of a type that run, newest first; not more than a list may have.
 *
 * @param taskQueue if given, only those of this queue: others of the namespace do not count
 */
export async function* runningWorkflows(
  client: Client,
  type: string,
  taskQueue?: string,
): AsyncGenerator<WorkflowExecutionInfo> {
  const onQueue = taskQueue === undefined ? '' : ` AND TaskQueue = '${taskQueue}'`;
  const query = `WorkflowType = '${type}' AND ExecutionStatus = 'Running'${onQueue}`;
  let count = 0;
  for await (const workflow of client.workflow.list({ query })) {
    if (count++ >= fleetMessages.count.listed) return;
    yield workflow;
  }
}

/** What is known of the poll for queued runs. `silent` if no worker answers for it. */
export type PollStanding =
  | { kind: 'none' }
  | { kind: 'silent'; since: number }
  /** @param lastFailure why its last look failed as a whole */
  | { kind: 'polling'; state: PollState; lastFailure: string | undefined };

/** The poll of a fleet. */
export class PollHandle {
  readonly #client: Client;
  readonly #taskQueue: string;

  constructor({ client, fleet }: Pick<FleetConnection, 'client' | 'fleet'>) {
    this.#client = client;
    this.#taskQueue = fleet.taskQueue;
  }

  /** Throws `FLEET_POLL_RUNNING` if the fleet polls already. */
  async start(input: PollInput): Promise<void> {
    try {
      await this.#client.workflow.start(pollWorkflow, {
        workflowId: pollId(this.#taskQueue),
        taskQueue: workflowQueue(this.#taskQueue),
        args: [input],
        workflowIdConflictPolicy: 'FAIL',
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      throw inputError('FLEET_POLL_RUNNING', 'the fleet polls already', {
        hint: '`offsite fleet status` shows what it polls. To poll something else: offsite fleet poll --stop',
        cause: error,
      });
    }
  }

  /** Ends the poll. Trials that it started continue. Resolves with whether there was one. */
  async stop(clock: Clock): Promise<boolean> {
    try {
      await this.#within(() => this.#workflow.signal(pollSignals.stop));
      for (const until = clock.now() + fleetMessages.time.call; clock.now() < until; ) {
        if ((await this.#within(() => this.#workflow.describe())).status.name !== 'RUNNING') return true;
        await pause(clock, 200, new AbortController().signal);
      }
      // No worker is there to receive the signal.
      await this.#within(() => this.#workflow.terminate('offsite fleet poll --stop'));
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  }

  async standing(): Promise<PollStanding> {
    try {
      const { status, startTime, raw } = await this.#within(() => this.#workflow.describe());
      if (status.name !== 'RUNNING') return { kind: 'none' };
      const lastFailure = raw.pendingActivities?.[0]?.lastFailure?.message ?? undefined;
      try {
        const state = await this.#within(() => this.#workflow.query<PollState>(pollQuery));
        return { kind: 'polling', state, lastFailure };
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) throw error;
        return { kind: 'silent', since: startTime.getTime() };
      }
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { kind: 'none' };
      throw error;
    }
  }

  /**
   * Runs `work`, which starts a batch at the service. Meanwhile, the poll ignores queued runs of these cases,
   * because the service lists the batch's runs before the batch has its workflow. Rejects if `work` does.
   */
  async whileStarting<Result>(
    cases: string[],
    { clock, note }: { clock: Clock; note(message: string): void },
    work: () => Promise<Result>,
  ): Promise<Result> {
    const since = clock.now();
    const start: Starting = { token: randomUUID(), cases, since, until: since + fleetMessages.time.starting };
    const isAnnounced = await this.#signal(pollSignals.starting, start, note);
    const result = await work();
    // After a failure the batch may exist, and its runs count as queued by somebody else some minutes later.
    if (isAnnounced) await this.#signal(pollSignals.started, start.token, note);
    return result;
  }

  async #signal(
    signal: string,
    content: Starting | string,
    note: (message: string) => void,
  ): Promise<boolean> {
    try {
      await this.#within(() => this.#workflow.signal(signal, content));
      return true;
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError))
        note(`cannot inform the poll of the fleet: ${messageOf(error)}`);
      return false;
    }
  }

  #within<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    return this.#client.withDeadline(Date.now() + fleetMessages.time.call, ask);
  }

  get #workflow() {
    return this.#client.workflow.getHandle(pollId(this.#taskQueue));
  }
}
