import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { OpenBatch } from '../agent/batch-run.ts';
import { missingSetups } from '../agent/pull.ts';
import { resolvePrompt, type StartParts, startUnder } from '../agent/start-batch.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import type { Config } from '../suite/config-file.ts';
import { runDetails, type SuitePlan } from '../suite/plan.ts';
import { putContexts } from './contexts.ts';
import { putDocument } from './document.ts';
import type { FleetStorage } from './storage/storage.ts';
import { type BatchInput, batchWorkflow } from './workflow/messages.ts';

export interface FleetStart extends StartParts {
  temporal: Client;
  storage: FleetStorage;
  config: Config;
  pool: string;
  priority: number;
  /** The most trials that are scheduled at a time. */
  window: number;
  /** The most trials of one workflow. */
  slice: number;
  /** The group of the batch, unless it is one of its own. */
  group?: string | undefined;
}

/** Starts a batch at the Eval Service, puts its plan into the storage, and starts its workflow. */
export async function startFleetBatch(
  plan: SuitePlan,
  parts: FleetStart,
  signal: AbortSignal,
): Promise<OpenBatch> {
  const prompt = await resolvePrompt(plan, parts.client, signal);
  const batch = await startUnder(fleetLock, { plan, prompt }, parts, signal);
  await startWorkflow(batch, parts, signal);
  return batch;
}

/**
 * Starts the workflow of a batch, or of some runs of it, which may have been started before. Resolves with
 * whether this call did it.
 *
 * @param only the id of a workflow that is not the batch's own, and how many trials each of its runs has
 */
export async function startWorkflow(
  batch: OpenBatch,
  parts: FleetStart,
  signal: AbortSignal,
  only?: { workflow: string; trials: ReadonlyMap<string, number> },
): Promise<boolean> {
  const { temporal, service, storage, config, pool, priority, window, slice, group, ledger } = parts;
  const { plan, prompt, id } = batch;
  const setups = await missingSetups(batch, parts, signal);
  const contexts = await putContexts(plan, storage);
  const document = await putDocument(
    {
      contexts,
      ...{ batch: id, service, suite: plan.suite.name, file: plan.file, known: { plan, prompt } },
      trials: plan.trials,
      runs: batch.runs.map((run) => {
        const pulled = setups.find(({ run: key }) => key === run.key);
        const setup = pulled?.setup ?? run.setup;
        return {
          id: run.id,
          trials: only?.trials.get(run.id),
          taskIndex: run.taskIndex,
          caseId: run.case.request.id,
          caseName: run.case.request.name,
          variant: run.variant.name,
          variantIndex: plan.variants.indexOf(run.variant),
          details: runDetails(run.case),
          variantId: pulled?.variantId ?? run.variantId,
          setup: setup === undefined ? undefined : ledger.blobs.readJson(setup),
        };
      }),
    },
    storage,
  );
  const trials = batch.runs.reduce((sum, { id }) => sum + (only?.trials.get(id) ?? plan.trials), 0);
  const { batch: budget, trial: trialBudget } = config.budgets;
  const input: BatchInput = {
    ...{ batch: id, document, trials, pool, window, priority, group },
    taskQueue: config.fleet.taskQueue,
    heartbeatMs: config.fleet.heartbeat,
    slice,
    lane: fleetMessages.count.lane,
    budget: { tokens: budget.tokens, usd: budget.usd },
    trialBudget: { tokens: trialBudget.tokens, usd: trialBudget.usd },
  };
  try {
    await temporal.workflow.start(batchWorkflow, {
      workflowId: only?.workflow ?? id,
      taskQueue: config.fleet.taskQueue,
      args: [input],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: 'FAIL',
      memo: { service, suite: plan.suite.name, pool, document },
    });
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}
