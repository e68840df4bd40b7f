import { randomUUID } from 'node:crypto';
import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import { pause } from '../base/abortable.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import type { FleetConnection } from './connect.ts';
import { workflowQueue } from './format.ts';
import type { Starting } from './worker/orders.ts';
import {
  type PollInput,
  type PollState,
  pollId,
  pollQuery,
  pollSignals,
  pollWorkflow,
} from './workflow/poll-messages.ts';

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
      throw new OffsiteError('the fleet polls already', {
        code: 'FLEET_POLL_RUNNING',
        kind: 'input',
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
