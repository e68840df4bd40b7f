import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { OpenBatch } from '../agent/batch-run.ts';
import { missingSetups, type StartParts, startUnder, withPrompt } from '../agent/start-batch.ts';
import { inputError } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import type { Config } from '../suite/config-file.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { PollHandle } from './batch-handle.ts';
import { putContexts } from './contexts.ts';
import { documentContent } from './document.ts';
import { fleetFormat, workflowQueue } from './format.ts';
import { distinctNeeds, plannedNeeds } from './placement.ts';
import { type FleetStorage, hashOf, rerunName } from './storage/storage.ts';
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
  /** Reports a failure that does not affect the batch. */
  note(message: string): void;
}

/** Starts a batch at the Eval Service, puts its plan into the storage, and starts its workflow. */
export async function startFleetBatch(
  plan: SuitePlan,
  parts: FleetStart,
  signal: AbortSignal,
): Promise<OpenBatch> {
  requireFewNeeds(plan);
  const known = await withPrompt(plan, parts.client, signal);
  const poll = new PollHandle({ client: parts.temporal, fleet: parts.config.fleet });
  const cases = plan.cases.map(({ request }) => request.id);
  return await poll.whileStarting(cases, parts, async () => {
    const batch = await startUnder(fleetLock, known, parts, signal);
    await startWorkflow(batch, parts, signal);
    return batch;
  });
}

/**
 * Starts the workflow of a batch, or of some runs of it, unless it was started before. Resolves with whether
 * this call started it.
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
  const { plan, id } = batch;
  const setups = await missingSetups(batch, parts, signal);
  const contexts = await putContexts(plan, storage);
  const runs = batch.runs.map((run) => ({
    run,
    needs: plannedNeeds(run.case, run.variant, plan.judges),
    trials: only?.trials.get(run.id),
  }));
  const needs = distinctNeeds(runs.map((one) => one.needs));
  const content = documentContent({
    contexts,
    kind: 'planned',
    batch: id,
    service,
    suite: plan.suite.name,
    file: plan.file,
    plan,
    trials: plan.trials,
    runs: runs.map(({ run, needs, trials }) => {
      const pulled = setups.find(({ key }) => key === run.key);
      const setup = pulled?.setup ?? run.setup;
      return {
        id: run.id,
        needs,
        trials,
        taskIndex: run.taskIndex,
        caseId: run.caseId,
        caseName: run.case.request.name,
        variant: run.variant.name,
        variantIndex: run.variantIndex,
        variantId: pulled?.variantId ?? run.variantId,
        setup: setup === undefined ? undefined : ledger.blobs.readJson(setup),
      };
    }),
  });
  const document = hashOf(content);
  const workflow = only?.workflow ?? id;
  await storage.put(document, content);
  // The poll for queued runs leaves these runs alone.
  if (!only) await storage.putNote('batches', id, { document });
  else for (const { run } of runs) await storage.putNote('reruns', rerunName(id, run.id), { document });
  const trials = runs.reduce((sum, one) => sum + (one.trials ?? plan.trials), 0);
  const { batch: budget, trial: trialBudget } = config.budgets;
  const input: BatchInput = {
    batch: id,
    document,
    trials,
    pool,
    window,
    priority,
    group,
    taskQueue: config.fleet.taskQueue,
    heartbeatMs: config.fleet.heartbeat,
    slice,
    lane: fleetMessages.count.lane,
    budget: { tokens: budget.tokens, usd: budget.usd },
    trialBudget: { tokens: trialBudget.tokens, usd: trialBudget.usd },
  };
  try {
    await temporal.workflow.start(batchWorkflow, {
      workflowId: workflow,
      taskQueue: workflowQueue(config.fleet.taskQueue),
      args: [input],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      workflowIdConflictPolicy: 'FAIL',
      memo: {
        service,
        suite: plan.suite.name,
        pool,
        document,
        format: fleetFormat,
        needs,
        trials,
      },
    });
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}

/** Throws `FLEET_TOO_MANY_NEEDS`. */
function requireFewNeeds({ cases, variants, judges }: SuitePlan): void {
  const all = cases.flatMap((one) => variants.map((variant) => plannedNeeds(one, variant, judges)));
  const { length: count } = distinctNeeds(all);
  const most = fleetMessages.count.needs;
  if (count <= most) return;
  throw inputError(
    'FLEET_TOO_MANY_NEEDS',
    `the trials of the batch have ${count} different needs of memory, labels and models`,
    { hint: `A fleet has a task queue for each, at most ${most} for a batch. Start several batches.` },
  );
}
