import {
  ActivityCancelledError,
  ActivityNotFoundError,
  ActivityPausedError,
  ActivityResetError,
  type Client,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { OffsiteError } from '../../base/offsite-error.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { queries, type TrialSummary } from '../workflow/messages.ts';
import type { BeatAnswer } from './task-hold.ts';

/**
 * What a worker reports to the Temporal server about its tasks. The answer of each call says who has the
 * task.
 */
export class Tasks {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Rejects if the server does not answer in time. */
  async beat(token: Uint8Array, phase: string, withinMs: number): Promise<BeatAnswer> {
    try {
      await this.#within(withinMs, () => this.#client.activity.heartbeat(token, { phase }));
      return 'held';
    } catch (error) {
      if (error instanceof ActivityNotFoundError) return 'refused';
      if (error instanceof ActivityCancelledError) return 'canceled';
      // A paused activity is not given to another worker while it runs.
      if (error instanceof ActivityPausedError || error instanceof ActivityResetError) return 'held';
      throw error;
    }
  }

  /** Completes a task. Rejects if it is not known whether the server has the completion. */
  async complete(token: Uint8Array, summary: TrialSummary): Promise<'accepted' | 'refused'> {
    try {
      await this.#within(fleetMessages.time.call, () => this.#client.activity.complete(token, summary));
      return 'accepted';
    } catch (error) {
      if (error instanceof ActivityNotFoundError) return 'refused';
      throw error;
    }
  }

  /** Reports that a canceled task has ended. Never rejects: the server finds out when its heartbeats end. */
  async canceled(token: Uint8Array): Promise<void> {
    await this.#within(fleetMessages.time.call, () => this.#client.activity.reportCancellation(token)).catch(
      () => undefined,
    );
  }

  /**
   * What completed a trial in a run of a batch's workflow; undefined if nothing did, or the run is not known.
   */
  async outcome(
    { workflowId, runId }: { workflowId: string; runId: string },
    trial: string,
  ): Promise<TrialSummary | undefined> {
    try {
      const workflow = this.#client.workflow.getHandle(workflowId, runId);
      const found = await this.#within(fleetMessages.time.call, () =>
        workflow.query<TrialSummary | null, [string]>(queries.outcome, trial),
      );
      return found ?? undefined;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  }

  /** The packed plan that a workflow holds. Throws `FLEET_CONTENT_MISSING`. */
  async plan(workflowId: string): Promise<string> {
    const { workflow } = this.#client;
    const plan = await this.#within(fleetMessages.time.call, () =>
      workflow.getHandle(workflowId).query<string | null>(queries.plan),
    );
    if (plan !== null) return plan;
    throw new OffsiteError(`the workflow ${workflowId} has no plan`, {
      code: 'FLEET_CONTENT_MISSING',
      kind: 'infrastructure',
    });
  }

  #within<Answer>(ms: number, call: () => Promise<Answer>): Promise<Answer> {
    return this.#client.withDeadline(Date.now() + ms, call);
  }
}
