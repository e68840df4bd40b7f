import type { RunRecord, RunVariant } from '../../contract/record.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { QueuedTrial } from '../../ledger/queue.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { PlannedVariant } from '../../suite/plan.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { checkSandboxes } from '../../trial/base-image.ts';
import { passedEnvironment, refuseKeys } from '../../trial/host-environment.ts';
import { checkModels } from '../../trial/models.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import type { OpenBatch, OpenRun } from '../batch-run.ts';
import { openBatch } from '../resume-batch.ts';
import { ownTrialSpec } from '../trial-spec.ts';
import type { BatchesInHand } from './batches-in-hand.ts';
import type { FoundMemory } from './found-run.ts';
import { foundTrialSpec } from './found-spec.ts';
import type { Generation } from './generation.ts';
import { knownVariant } from './variants.ts';

export type Specified =
  | { kind: 'ready'; spec: TrialSpec }
  /** Until the configuration changes; with `again`, until the machine may have. */
  | { kind: 'waiting'; reason: string; again: boolean }
  /** For good. */
  | { kind: 'parked'; reason: string };

export interface SpecParts {
  ledger: Ledger;
  engine: Engine;
  harnesses: readonly HarnessOffer[];
  batches: BatchesInHand;
  generation: Generation;
  /** Sandboxes, as JSON, that the engine was seen to be able to run; added to. */
  checked: Set<string>;
}

/** What is to be done in a claimed trial, or why it cannot be begun. Rejects only where the signal aborts, and for defects of ours. */
export async function specify(trial: QueuedTrial, parts: SpecParts, signal: AbortSignal): Promise<Specified> {
  try {
    const specified = trial.origin === 'found' ? found(trial, parts) : started(trial, parts);
    if (specified.kind !== 'ready') return specified;
    const { sandbox } = specified.spec;
    passedEnvironment(sandbox, parts.generation.host);
    refuseKeys(specified.spec, parts.generation.host);
    const checked = JSON.stringify(sandbox);
    if (!parts.checked.has(checked)) await checkSandboxes(parts.engine, [sandbox], signal);
    parts.checked.add(checked);
    const { model, modelConfig, user, judges } = specified.spec;
    const variants = [{ model, modelConfig, userModel: user?.model }];
    await checkModels({ variants, judges }, parts.generation.gateway);
    return specified;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    const reason = error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
    return parking.has(error.code)
      ? { kind: 'parked', reason }
      : { kind: 'waiting', reason, again: error.kind === 'infrastructure' };
  }
}

/** What no other configuration and no other day would change. */
const parking = new Set([
  'SETUP_MISSING',
  'SETUP_UNREADABLE',
  'SOURCE_UNKNOWN',
  'BLOB_MISSING',
  'BLOB_DAMAGED',
  'RUN_UNKNOWN',
  'PLAN_UNREADABLE',
]);

function found(trial: QueuedTrial, parts: SpecParts): Specified {
  const { ledger, harnesses, generation } = parts;
  const { config } = generation;
  const { variant: names } = trial.memory as FoundMemory;
  const cell = cellOf(trial, names, parts);
  if (cell.kind === 'ambiguous') return { kind: 'waiting', reason: cell.reason, again: false };
  if (cell.kind === 'planned') return { kind: 'ready', spec: plannedSpec(trial, cell, parts) };
  const known = knownVariant(names, config, harnesses);
  if (known.kind === 'unknown') {
    return { kind: 'waiting', reason: `its variant is not known here: ${known.reason}`, again: false };
  }
  try {
    return { kind: 'ready', spec: foundTrialSpec(trial, known.variant, config.daemon.judges, ledger) };
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    // Whatever the service may have put there.
    return { kind: 'parked', reason: `its setup cannot be read: ${messageOf(error)}` };
  }
}

function started(trial: QueuedTrial, parts: SpecParts): Specified {
  const { ledger, batches } = parts;
  const batch = batches.planOf(trial.batch, () => openBatch(ledger.batches.byKey(trial.batch), ledger));
  const run = batch.runs.find(({ key }) => key === trial.run);
  if (!run) throw new Error(`trial ${trial.key} is of a run that batch ${batch.id} does not have`);
  return { kind: 'ready', spec: plannedSpec(trial, { ...run, batch }, parts) };
}

/** What was planned for a run of a batch. */
type PlannedRun = Pick<OpenRun, 'case' | 'variant' | 'taskIndex'> & { batch: OpenBatch };

function plannedSpec(
  { runId, setup, ordinal }: QueuedTrial,
  { batch, ...run }: PlannedRun,
  { ledger }: SpecParts,
): TrialSpec {
  const { prompt, id: batchId, plan } = batch;
  const pulled = setup === undefined ? undefined : (ledger.blobs.readJson(setup) as RunRecord['setup']);
  const record = { id: runId, setup: pulled };
  return ownTrialSpec({ ...run, record, prompt, batchId, judges: plan.judges }, ordinal);
}

type Cell =
  | ({ kind: 'planned' } & PlannedRun)
  /** The run is of a batch that this agent did not plan, or of none of its cases. */
  | { kind: 'unplanned' }
  | { kind: 'ambiguous'; reason: string };

/** The planned case and variant that a run repeats which somebody added to a batch of this agent. */
function cellOf(trial: QueuedTrial, names: RunVariant | undefined, { ledger, batches }: SpecParts): Cell {
  const stored = ledger.batches.byKey(trial.batch);
  if (stored.plan === undefined || names === undefined) return { kind: 'unplanned' };
  const batch = batches.planOf(trial.batch, () => openBatch(stored, ledger));
  const planned = batch.plan.cases.find(({ request }) => request.id === trial.caseId);
  if (!planned) return { kind: 'unplanned' };
  const byId = batch.runs.find(({ variantId }) => variantId === names.id)?.variant;
  const [variant, other] = byId ? [byId] : batch.plan.variants.filter((one) => isCalled(one, names));
  if (!variant) return { kind: 'unplanned' };
  if (other) {
    const reason = `its batch has several variants of ${variant.model} in ${variant.harness}, and the service does not say which one was rerun`;
    return { kind: 'ambiguous', reason };
  }
  return { kind: 'planned', case: planned, variant, batch, taskIndex: 0 };
}

function isCalled({ model, credentials }: PlannedVariant, names: RunVariant): boolean {
  const { harnessConnectionId, sandboxConnectionId } = credentials;
  return (
    names.model === model &&
    (names.harness ?? harnessConnectionId) === harnessConnectionId &&
    (names.sandbox ?? sandboxConnectionId) === sandboxConnectionId
  );
}
