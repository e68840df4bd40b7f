import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { fleetMessages } from '../bounds/fleet.ts';
import { OffsiteError } from '../offsite-error.ts';
import {
  type BatchOutcome,
  type BatchProgress,
  batchWorkflow,
  queries,
  signals,
} from './workflow/messages.ts';

/** A trial that a worker holds, as Temporal tells it. */
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
    const open = (raw.pendingActivities ?? []).flatMap((pending) => {
      if (pending.activityType?.name !== 'offsiteTrial') return [];
      return {
        trial: pending.activityId ?? '',
        // Between two attempts, the server still has what the last one said.
        payloads: pending.state === scheduled ? [] : (pending.heartbeatDetails?.payloads ?? []),
        worker: pending.lastWorkerIdentity ?? '',
        attempt: pending.attempt ?? 1,
        lastFailure: pending.lastFailure?.message ?? undefined,
      };
    });
    const held = open.map(async ({ payloads, ...rest }) => ({
      ...rest,
      phase: await this.#phaseIn(payloads),
    }));
    return { status: status.name, memo, open: await Promise.all(held) };
  }

  /** Throws if no worker answers in time: workers run the workflow. */
  progress(after: number): Promise<BatchProgress> {
    return this.#known(() => this.#workflow.query<BatchProgress, [number]>(queries.progress, after));
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
    return this.#client.workflow.getHandle(this.id);
  }

  async #known<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await this.#client.withDeadline(Date.now() + fleetMessages.time.call, ask);
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      throw new OffsiteError(`the fleet has no batch ${this.id} in progress`, {
        code: 'FLEET_BATCH_UNKNOWN',
        kind: 'input',
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

/** The ids of the batches in progress, newest first. */
export async function batchesInProgress(client: Client): Promise<string[]> {
  const ids: string[] = [];
  const query = `WorkflowType = '${batchWorkflow}' AND ExecutionStatus = 'Running'`;
  for await (const { workflowId } of client.workflow.list({ query })) {
    if (ids.push(workflowId) >= fleetMessages.count.listed) break;
  }
  return ids;
}
