import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import { type Clock, longestSince, momentOf } from '../../base/clock.ts';
import { pause } from '../../base/deadline.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { Semaphore } from '../../base/semaphore.ts';
import type { Renewal } from '../../base/shares.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { FleetConnection } from '../connect.ts';
import { workflowQueue } from '../format.ts';
import { type LimitInput, limitWorkflow, updates } from '../workflow/messages.ts';

export interface ModelPermitsParts {
  connection: FleetConnection;
  clock: Clock;
  /** Called when requests in flight have no permits any more, so that the trials that sent them must end. */
  lost(model: string): void;
  /** Called with each new reason why permits cannot be renewed. */
  note(message: string): void;
}

type LimitWorkflow = (input: LimitInput) => Promise<void>;

/** A holder gives its permits up after this part of the time for which the fleet keeps them for it. */
const ownPart = 3 / 5;
/** Renewals in that time while nothing changes. */
const renewals = 3;
/** Milliseconds between two looks at the demand, and between two renewals while requests wait. */
const lookMs = 50;
const starvingMs = 500;

/**
 * The permits of this process for requests to models with a limit. One workflow for each model holds the
 * permits of the whole fleet. This process asks the workflow for as many as it needs, and renews them.
 */
export class ModelPermits implements AsyncDisposable {
  readonly #parts: ModelPermitsParts;
  readonly #holder = randomUUID();
  readonly #models = new Map<string, { permits: Semaphore; kept: Promise<void> }>();
  readonly #ended = new AbortController();
  #sequence = 0;

  constructor(parts: ModelPermitsParts) {
    this.#parts = parts;
  }

  /** The permits for a model: none until the fleet has granted some. */
  readonly of = (model: string, maxParallel: number): Semaphore => {
    const known = this.#models.get(model);
    if (known) return known.permits;
    const permits = new Semaphore(0);
    this.#models.set(model, { permits, kept: this.#keep(model, maxParallel, permits) });
    return permits;
  };

  /** Gives all permits back. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await Promise.all([...this.#models.values()].map(({ kept }) => kept));
  }

  get #termMs(): number {
    return 2 * this.#parts.connection.fleet.heartbeat;
  }

  /** Never rejects. */
  async #keep(model: string, limit: number, permits: Semaphore): Promise<void> {
    const { clock, lost, note } = this.#parts;
    const { signal } = this.#ended;
    const ownMs = this.#termMs * ownPart;
    let renewed = momentOf(clock);
    let askedAt = Number.NEGATIVE_INFINITY;
    let lastReason: string | undefined;
    let isLost = false;
    for (; !signal.aborted; await pause(clock, lookMs, signal)) {
      const now = momentOf(clock);
      const silentMs = longestSince(renewed, clock);
      if (silentMs >= ownMs && (permits.limit > 0 || permits.held > 0)) {
        permits.limit = 0;
        if (permits.held > 0 && !isLost) lost(model);
        isLost = true;
      }
      const wants = permits.held + permits.waiting;
      const isStarving = permits.waiting > 0 && permits.held >= permits.limit;
      // Other processes may need the permits that this one does not use.
      const isRich = permits.limit > wants;
      const dueMs = isStarving || isRich ? starvingMs : ownMs / renewals;
      if ((wants === 0 && permits.limit === 0) || now.monotonic - askedAt < dueMs) continue;
      askedAt = now.monotonic;
      const keep = Math.max(permits.held, Math.min(permits.limit, wants));
      permits.limit = keep;
      try {
        const granted = await this.#renew(model, { keep, wants, limit });
        permits.limit = Number.isSafeInteger(granted) ? Math.min(Math.max(0, granted), limit) : 0;
        renewed = now;
        lastReason = undefined;
        isLost = false;
      } catch (error) {
        const reason = messageOf(error);
        if (reason !== lastReason) note(`the permits of the model ${model} cannot be renewed: ${reason}`);
        lastReason = reason;
      }
    }
    await this.#renew(model, { keep: permits.held, wants: permits.held, limit }).catch(() => undefined);
  }

  async #renew(model: string, asked: Omit<Renewal, 'holder' | 'sequence'>): Promise<number> {
    const { client, fleet } = this.#parts.connection;
    const renewal: Renewal = { holder: this.#holder, sequence: ++this.#sequence, ...asked };
    const input: LimitInput = { termMs: this.#termMs };
    const startWorkflowOperation = new WithStartWorkflowOperation<LimitWorkflow>(limitWorkflow, {
      workflowId: `${fleet.taskQueue}/model/${model}`,
      taskQueue: workflowQueue(fleet.taskQueue),
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
    // During this call, this process does not check its own deadline, so the call must be short.
    const withinMs = Math.min(fleetMessages.time.call, (this.#termMs * ownPart) / renewals);
    return await client.withDeadline(Date.now() + withinMs, () =>
      client.workflow.executeUpdateWithStart<LimitWorkflow, number, [Renewal]>(updates.renew, {
        startWorkflowOperation,
        args: [renewal],
      }),
    );
  }
}
