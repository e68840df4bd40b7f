import { Delivery, type DeliveryParts } from '../../agent/delivery.ts';
import type { Sent } from '../../agent/outbox-delivery.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { TrialKey } from '../../ledger/batches.ts';
import type { FleetTask } from '../../ledger/fleet-tasks.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PendingReport } from '../../ledger/outbox.ts';
import type { FleetStorage } from '../storage/storage.ts';
import { type TrialSummary, trialName } from '../workflow/messages.ts';
import { storeRecord } from './store-record.ts';
import type { Tasks } from './tasks.ts';

export interface FleetDeliveryParts extends DeliveryParts {
  ledger: Ledger;
  storage: FleetStorage | undefined;
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
export class FleetDelivery extends Delivery {
  readonly #parts: FleetDeliveryParts;

  constructor(parts: FleetDeliveryParts) {
    super(parts);
    this.#parts = parts;
  }

  protected override async send(report: PendingReport, signal: AbortSignal): Promise<Sent> {
    try {
      await this.#complete(report);
    } catch (error) {
      if (error instanceof TaskTaken) return { kind: 'superseded', answer: error.message };
      throw error;
    }
    signal.throwIfAborted();
    return super.send(report, signal);
  }

  async #complete(report: PendingReport): Promise<void> {
    const { ledger, tasks, storage, accepted } = this.#parts;
    const { trial, batchId: batch, runId: run, ordinal } = report;
    const task = ledger.fleetTasks.of(trial);
    // Other commands may have filled this outbox too.
    if (!task || task.isAccepted) return;
    const summary = await storeRecord(trial, this.#parts);
    const answer = await tasks.complete(task.token, summary).catch(asOutage);
    if (answer === 'refused') await this.#requireOwn(report, task, summary);
    if (summary.record !== undefined)
      await storage?.addResult(batch, { run, ordinal, record: summary.record });
    ledger.fleetTasks.accept(trial);
    accepted(trial);
  }

  /**
   * Returns if the refused result is nevertheless the trial's result: its completion was accepted before, and
   * the answer was lost. Throws {@link TaskTaken} otherwise.
   */
  async #requireOwn(
    report: PendingReport,
    { workflow, workflowRun }: FleetTask,
    own: TrialSummary,
  ): Promise<void> {
    const { batchId, runId: run, ordinal } = report;
    const name = trialName({ run, ordinal });
    const outcome = await this.#parts.tasks
      .outcome({ workflowId: workflow ?? batchId, runId: workflowRun }, name)
      .catch(asOutage);
    if (outcome?.record === own.record && outcome?.worker === own.worker) return;
    throw new TaskTaken(`trial ${name} was given to another worker, or its batch was canceled`);
  }
}

/** Temporal has given the trial to another worker. */
class TaskTaken extends OffsiteError {
  override readonly name = 'TaskTaken';

  constructor(message: string) {
    super(message, { code: 'FLEET_TASK_TAKEN', kind: 'infrastructure' });
  }
}

function asOutage(error: unknown): never {
  throw new OffsiteError(`the Temporal server did not take a result: ${messageOf(error)}`, {
    code: 'FLEET_UNREACHABLE',
    kind: 'infrastructure',
    cause: error,
  });
}
