import { z } from 'zod';
import { storedPlan } from '../../agent/batch-run.ts';
import { infrastructureError, inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { fleetMessages, fleetStorage } from '../../bounds/fleet.ts';
import type { RunKey } from '../../ledger/batches.ts';
import { type FleetTask, fleetLock } from '../../ledger/fleet-tasks.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { type StoredTrial, trialOf } from '../../ledger/trial-rows.ts';
import type { FleetDocument, FoundDocument } from '../document.ts';
import { Sha256 } from '../storage/storage.ts';

/** What the activities of a worker get, checked, because anyone who may start workflows may send anything. */

const Name = z.string().max(fleetStorage.bytes.name);

export const TrialOrder = z.object({
  batch: Name,
  /** The hash of the document. */
  document: Sha256,
  run: Name,
  ordinal: z.int().nonnegative(),
});
export type TrialOrder = z.infer<typeof TrialOrder>;

/** A forged batch with a shorter time would make the worker send heartbeats without a pause. */
export const shortestHeartbeatMs = 1_000;

/** A part of the list of a batch's trials, from the position `first` on. */
const TrialList = z.object({
  first: z.int().nonnegative(),
  count: z.int().nonnegative(),
});
export type TrialList = z.infer<typeof TrialList>;

export const PageOrder = z.object({
  document: Sha256,
  list: TrialList,
  taskQueue: Name,
  pool: Name,
});
export type PageOrder = z.infer<typeof PageOrder>;

const Epoch = z.number().nonnegative();

/** A poll target, and whether a poll has read all of it. */
const KnownTarget = z.object({
  target: z.object({ kind: z.enum(['case', 'suite']), id: Name, suite: Name.optional() }),
  known: z.boolean(),
});
export type KnownTarget = z.infer<typeof KnownTarget>;

/** How trials that are found are run. */
const FoundTrialSettings = z.object({
  taskQueue: Name,
  pool: Name,
  /** From 1, the most urgent, to 5. */
  priority: z.int().min(1).max(5),
  /** The most trials that are started and have not ended. */
  window: z.int().positive().max(fleetMessages.count.listed),
  heartbeatMs: z.number().min(shortestHeartbeatMs),
});
export type FoundTrialSettings = z.infer<typeof FoundTrialSettings>;

/** A batch that `fleet run` is starting: the service may list its runs before the fleet has its workflow. */
const Starting = z.object({
  /** Identifies the start. */
  token: Name,
  /** The ids of its cases. */
  cases: z.array(Name),
  /** When the service was asked, and when the start counts as over: epoch milliseconds. */
  since: Epoch,
  until: Epoch,
});
export type Starting = z.infer<typeof Starting>;

export const LookOrder = z.object({
  targets: z.array(KnownTarget).max(fleetMessages.count.targets),
  trials: FoundTrialSettings,
  starting: z.array(Starting),
  /** Epoch milliseconds. Runs that the service started later may belong to a batch that is being started. */
  before: Epoch,
});
export type LookOrder = z.infer<typeof LookOrder>;

/** The task that Temporal gave this worker for a trial. */
export type GivenTask = Omit<FleetTask, 'isAccepted'>;

/**
 * Puts a trial into the ledger's queue, with its task, unless the ledger has its result. A trial that this
 * worker had left to another one is queued again. Throws `FLEET_TRIAL_UNKNOWN` if the batch has no such
 * trial.
 */
export async function enterTrial(
  order: TrialOrder,
  document: FleetDocument,
  task: GivenTask,
  ledger: Ledger,
): Promise<StoredTrial> {
  const { runs, trials } = document;
  const run = runs.find(({ id }) => id === order.run);
  if (!run || order.ordinal >= (run.trials ?? trials) || order.batch !== document.batch)
    throw unknownTrial(order);
  const plan = await planOf(document, ledger);
  const setup = run.setup === undefined ? undefined : await ledger.blobs.putJson(run.setup);
  return enterWith(order, task, ledger, () => {
    const key = join({ ...document, runs: [run] }, plan, ledger).get(run.id);
    if (key !== undefined) ledger.queue.add([{ key, setup, ordinals: [] }]);
    return key;
  });
}

/** Queues the trial of the run that `enter` puts into the ledger, and keeps its task. */
function enterWith(
  { run, ordinal }: TrialOrder,
  task: GivenTask,
  { records, foundRuns, fleetTasks }: Ledger,
  enter: () => RunKey | undefined,
): StoredTrial {
  return records.transaction(() => {
    const key = enter();
    if (key === undefined) throw new Error(`run ${run} was added but is not in the ledger`);
    foundRuns.adoptOpen(key, [ordinal]);
    const trial = trialOf(records, key, ordinal);
    if (!trial) throw new Error(`trial ${ordinal} of run ${run} was added but is not in the ledger`);
    if (trial.report !== 'delivered') fleetTasks.put(trial.key, task);
    return trial;
  });
}

function unknownTrial({ batch, run, ordinal }: Pick<TrialOrder, 'batch' | 'run' | 'ordinal'>): OffsiteError {
  return infrastructureError(
    'FLEET_TRIAL_UNKNOWN',
    `the batch ${batch} has no trial ${ordinal} of run ${run}`,
  );
}

/**
 * The blobs with the plans of documents: writing a plan for each of its trials would take longer than the
 * trial.
 */
const plans = new WeakMap<FleetDocument, Promise<string>>();

function planOf(document: FleetDocument, ledger: Ledger): Promise<string> {
  const known = plans.get(document) ?? ledger.blobs.putJson(storedPlan(document.plan));
  plans.set(document, known);
  known.catch(() => plans.delete(document));
  return known;
}

/**
 * Puts a trial of a run that was found into the ledger's queue, as `enterTrial` does. If a fleet was given
 * the run's batch, the run runs as the batch was planned. Throws `FLEET_RUN_TAKEN` if a daemon of this data
 * folder has found the run.
 */
export async function enterFoundTrial(
  order: TrialOrder,
  { service, run, setup, planned }: Omit<FoundDocument, 'planned'> & { planned: FleetDocument | undefined },
  task: GivenTask,
  ledger: Ledger,
): Promise<StoredTrial> {
  const { foundRuns, blobs } = ledger;
  const { batch } = order;
  if (run.id !== order.run || run.batchId !== batch) throw unknownTrial(order);
  if (planned && (planned.batch !== batch || planned.service !== service))
    throw otherPlan(batch, planned.batch);
  const plan = planned && (await planOf(planned, ledger));
  const kept = setup === undefined ? undefined : await blobs.putJson(setup);
  return enterWith(order, task, ledger, () => {
    if (planned && plan !== undefined) join(planned, plan, ledger);
    foundRuns.adopt({ ...run, service, setup: kept, ordinals: [], lock: fleetLock });
    const key = foundRuns.find(service, run.batchId, run.id);
    if (key !== undefined && foundRuns.lockOf(key) !== fleetLock) throw taken(run.id);
    return key;
  });
}

/** Adds the plan of a batch, and which variant each of its runs has. Returns the keys of the runs. */
function join(document: FleetDocument, plan: string, { batches, queue }: Ledger): Map<string, RunKey> {
  const { batch: id, service, suite, file, runs } = document;
  const { runs: keys } = batches.join({ service, id, suite, file, plan, runs, lock: fleetLock });
  const variants = runs.flatMap(({ id: run, variantId }) => {
    const key = keys.get(run);
    return key === undefined ? [] : { key, setup: undefined, variantId, ordinals: [] };
  });
  queue.add(variants);
  return keys;
}

function otherPlan(batch: string, other: string): OffsiteError {
  return inputError(
    'FLEET_DOCUMENT_UNREADABLE',
    `the run of batch ${batch} names the plan of batch ${other}`,
  );
}

function taken(run: string): OffsiteError {
  return infrastructureError(
    'FLEET_RUN_TAKEN',
    `run ${run} is in this data folder's queue for another process`,
    { hint: 'Give the worker of the fleet a --data-folder of its own.' },
  );
}
