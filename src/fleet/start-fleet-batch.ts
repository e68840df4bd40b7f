import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { OpenBatch } from '../agent/batch-run.ts';
import { missingSetups } from '../agent/pull.ts';
import { resolvePrompt, type StartParts, startUnder } from '../agent/start-batch.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { Config } from '../suite/config-file.ts';
import { runDetails, type SuitePlan } from '../suite/plan.ts';
import { putDocument } from './document.ts';
import { fleetFormat, workflowQueue } from './format.ts';
import { distinctNeeds } from './placement/needs.ts';
import { plannedNeeds } from './placement/planned-needs.ts';
import { PollHandle } from './poll-handle.ts';
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
  /** Tells a person about something that went wrong and does not matter. */
  note(message: string): void;
}

/** After how many trials a workflow continues as new: its history has three to six events for each. */
const continueAfter = 1_000;

/** Throws `FLEET_BUILD_CONTEXT` for a suite whose images are built from folders of this machine. */
export function refuseContexts({ cases }: SuitePlan): void {
  const built = cases.find(({ local }) => local.environment.build !== undefined);
  if (!built) return;
  throw new OffsiteError(`the case ${built.request.id} builds its image from a folder of this machine`, {
    code: 'FLEET_BUILD_CONTEXT',
    kind: 'input',
    hint: 'Build the image once, push it to a registry that the workers reach, and name it as image.',
  });
}

/** Starts a batch at the Eval Service, puts its plan into the storage, and starts its workflow. */
export async function startFleetBatch(
  plan: SuitePlan,
  parts: FleetStart,
  signal: AbortSignal,
): Promise<OpenBatch> {
  const prompt = await resolvePrompt(plan, parts.client, signal);
  const poll = new PollHandle({ client: parts.temporal, fleet: parts.config.fleet });
  const cases = plan.cases.map(({ request }) => request.id);
  return await poll.whileStarting(cases, parts, async () => {
    const batch = await startUnder(fleetLock, { plan, prompt }, parts, signal);
    await startWorkflow(batch, parts, signal);
    return batch;
  });
}

/** Starts the workflow of a batch, which may have been started before. Resolves with whether this call did it. */
export async function startWorkflow(
  batch: OpenBatch,
  parts: FleetStart,
  signal: AbortSignal,
): Promise<boolean> {
  const { temporal, service, storage, config, pool, priority, window, ledger } = parts;
  const { plan, prompt, id } = batch;
  const setups = await missingSetups(batch, parts, signal);
  const document = await putDocument(
    {
      ...{ kind: 'planned', batch: id, service, suite: plan.suite.name, file: plan.file },
      known: { plan, prompt },
      trials: plan.trials,
      runs: batch.runs.map((run) => {
        const pulled = setups.find(({ run: key }) => key === run.key);
        const setup = pulled?.setup ?? run.setup;
        return {
          id: run.id,
          taskIndex: run.taskIndex,
          caseId: run.case.request.id,
          caseName: run.case.request.name,
          variant: run.variant.name,
          variantIndex: plan.variants.indexOf(run.variant),
          details: runDetails(run.case),
          variantId: pulled?.variantId ?? run.variantId,
          setup: setup === undefined ? undefined : ledger.blobs.readJson(setup),
          needs: plannedNeeds(run.case, run.variant, plan.judges),
        };
      }),
    },
    storage,
  );
  // The poll for queued runs leaves the runs of the batch alone.
  await storage.putNote('batches', id, { document });
  const needs = distinctNeeds(batch.runs.map((run) => plannedNeeds(run.case, run.variant, plan.judges)));
  if (needs.length > fleetMessages.count.needs) throw tooManyNeeds(needs.length);
  const { batch: budget, trial: trialBudget } = config.budgets;
  const input: BatchInput = {
    ...{ batch: id, document, trials: batch.runs.length * plan.trials, pool, window, priority },
    taskQueue: config.fleet.taskQueue,
    heartbeatMs: config.fleet.heartbeat,
    continueAfter,
    budget: { tokens: budget.tokens, usd: budget.usd },
    trialBudget: { tokens: trialBudget.tokens, usd: trialBudget.usd },
  };
  try {
    await temporal.workflow.start(batchWorkflow, {
      workflowId: id,
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
        trials: input.trials,
      },
    });
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}

function tooManyNeeds(count: number): OffsiteError {
  return new OffsiteError(
    `the trials of the batch have ${count} different needs of memory, labels and models`,
    {
      code: 'FLEET_TOO_MANY_NEEDS',
      kind: 'input',
      hint: `A fleet has a task queue for each, at most ${fleetMessages.count.needs} for a batch. Start several batches.`,
    },
  );
}
