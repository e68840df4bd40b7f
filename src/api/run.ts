import { type FinishedBatches, runUntilPrecise } from '../agent/auto-trials.ts';
import { readPlan } from '../agent/batch-run.ts';
import { ConfigRevisions } from '../agent/config-revision.ts';
import { deliverLeftovers } from '../agent/delivery.ts';
import { recordedModels, requireRecorded } from '../agent/ledger-cassette.ts';
import type { BatchEvent, BatchParts } from '../agent/run-batch.ts';
import { planParts, runSet } from '../agent/run-set.ts';
import { inputError } from '../base/offsite-error.ts';
import { findBatch } from '../ledger/find.ts';
import type { Config } from '../suite/config-file.ts';
import { BadFile } from '../suite/file-issues.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { PlannedReplay, SuitePlan } from '../suite/plan.ts';
import { passedEnvironment } from '../trial/prepare/environment.ts';
import { SandboxRefused } from '../trial/prepare/start-image.ts';
import { askedBy, checkModels } from '../trial/run/models.ts';
import type { Context, Workshop } from './context.ts';
import { requireRoom } from './data-folder.ts';
import { requireScripts } from './models.ts';
import { type Observer, type PlannedSuite, plannedSuite, step, type TaskOptions } from './plan-suite.ts';
import { ciRun } from './types.ts';

/** What to run of a suite, and how. */
export interface RunChoice extends TaskOptions {
  /** In place of those of the suite. `auto`: until the pass rates are known precisely. */
  trials?: number | 'auto' | undefined;
  /** With `auto`: half the width of the 95 % interval. */
  precision?: number | undefined;
  /** With `auto`: the most trials of a case on a variant. */
  maxTrials?: number | undefined;
  /** The batch whose recorded answers take the place of models. */
  replay?: string | undefined;
  onMiss?: OnMiss | undefined;
  allowOutside?: string[] | undefined;
}

interface Watched {
  progress: Observer;
  signal: AbortSignal;
}

/** Plans what `offsite run` runs. Throws `BadFile` and `input` errors; starts nothing. */
export async function planRun(
  context: Context,
  file: string | undefined,
  choice: RunChoice,
  watched: Watched,
): Promise<PlannedSuite> {
  // Before sources are fetched into it.
  requireRoom(context.dataFolder);
  const { replay: name, onMiss = 'fail' } = choice;
  const recorded = name === undefined ? undefined : replayedBatch(context, name, onMiss);
  const planned = await plannedSuite(file, choice, context, { ...watched, models: recorded?.models });
  // A dry run uses other models, but must refuse bad scripts as the run would.
  if (context.configured !== context.config.models)
    await requireScripts(askedBy(planned.plan), context.configured);
  const trials = typeof choice.trials === 'number' ? choice.trials : planned.plan.trials;
  const chosen = { trials, trigger: ciRun(context.env), ...(recorded && { replay: recorded.replay }) };
  const plan = { ...planned.plan, ...chosen };
  refuseManyAuto(plan, choice);
  return { ...planned, plan };
}

export interface FinishedRun extends FinishedBatches {
  /** Results of earlier batches that the service does not show. */
  leftovers: number;
}

/** A planned suite with everything that its trials need. Disposing closes its gateway. */
export interface ReadyRun extends AsyncDisposable {
  workshop: Workshop;
  parts: BatchParts;
  /** Trials at a time. */
  concurrency: number;
  /**
   * Runs the trials, in as many batches as the cases need, then delivers what earlier runs left. Rejects as
   * `runBatch` does; `resume` continues then.
   */
  work(observe: (event: BatchEvent) => void): Promise<FinishedRun>;
}

/** Connects to engine and service, and checks that the models answer. Throws `input` errors. */
export async function readyRun(
  context: Context,
  plan: SuitePlan,
  choice: RunChoice & { concurrency?: number | undefined },
  { progress, signal }: Watched,
): Promise<ReadyRun> {
  const connect = () => context.workshop(signal);
  const workshop = await step('connecting to engine and service', progress, connect);
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop, { concurrency: choice.concurrency, sandboxes });
  const revisions = new ConfigRevisions(revision);
  try {
    await checkModels(plan, revision);
    for (const sandbox of sandboxes) passedEnvironment(sandbox, context.host);
  } catch (error) {
    await revisions[Symbol.asyncDispose]();
    throw error;
  }
  context.noteLimits();
  const parts = { ...workshop, revisions };
  const { precision = 0.05, maxTrials = 20 } = choice;
  return {
    workshop,
    parts,
    concurrency: revision.concurrency,
    async work(observe) {
      try {
        const finished =
          choice.trials === 'auto'
            ? await runUntilPrecise(plan, { precision, maxTrials }, parts, signal, observe)
            : { ...(await runSet(plan, parts, signal, observe)), rates: [] };
        const own = finished.batches.map(({ id }) => id);
        const leftovers = await step('delivering results of earlier runs', progress, () =>
          deliverLeftovers(workshop, signal, progress.note, own),
        );
        return { ...finished, leftovers };
      } catch (error) {
        throw placedFailure(error, context.config);
      }
    },
    [Symbol.asyncDispose]: () => revisions[Symbol.asyncDispose](),
  };
}

/** `--trials auto` starts further trials as batches of some cases. All cases must fit into one request. */
function refuseManyAuto(plan: SuitePlan, { trials }: RunChoice): void {
  if (trials !== 'auto' || planParts(plan).length === 1) return;
  throw inputError('TOO_MANY_CASES', `--trials auto cannot be used with ${plan.cases.length} cases`, {
    hint: 'Choose at most 100 tasks, with --include or --limit.',
  });
}

/** An error whose cause is in `offsite.yaml`, with its place there. All others are returned as they are. */
export function placedFailure(error: unknown, { issue, sandboxes }: Config): unknown {
  if (!(error instanceof SandboxRefused) || error.kind !== 'input') return error;
  const { sandbox, setting } = error.refused;
  if (!issue || !Object.hasOwn(sandboxes, sandbox)) return error;
  const message = error.hint === undefined ? error.message : `${error.message}. ${error.hint}`;
  return new BadFile([issue(['sandboxes', sandbox, ...(setting ? [setting] : [])], message)]);
}

type OnMiss = 'fail' | 'live';

interface ReplayedBatch {
  replay: PlannedReplay;
  /** The models to plan with: those of the configuration, and those that only the recorded batch knows. */
  models: Record<string, ModelConfig>;
}

/**
 * The batch whose recorded answers take the place of models. Throws as {@link findBatch} does, and
 * `NOT_RECORDED`.
 */
function replayedBatch(context: Context, reference: string, onMiss: OnMiss): ReplayedBatch {
  const ledger = context.ledger();
  const batch = findBatch(ledger.records, reference);
  requireRecorded(ledger, batch);
  const live = onMiss === 'live' ? 'missing' : 'never';
  const replay: PlannedReplay = { batch: batch.key, name: batch.id, live };
  const { models } = context.config;
  // A live model needs its configuration.
  if (live !== 'never' || batch.plan === undefined) return { replay, models };
  const plan = readPlan(ledger.blobs.readJson(batch.plan));
  return { replay, models: { ...recordedModels(plan, batch.id), ...models } };
}
