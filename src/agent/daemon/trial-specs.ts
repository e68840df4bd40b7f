import type { RunRecord } from '../../contract/record.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ClaimedTrial } from '../../ledger/claims.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { checkSandboxes } from '../../trial/base-image.ts';
import { passedEnvironment, refuseKeys } from '../../trial/host-environment.ts';
import { checkModels } from '../../trial/models.ts';
import type { TrialSpec } from '../../trial/spec.ts';
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
export async function specify(
  trial: ClaimedTrial,
  parts: SpecParts,
  signal: AbortSignal,
): Promise<Specified> {
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

function found(trial: ClaimedTrial, { ledger, harnesses, generation }: SpecParts): Specified {
  const { config } = generation;
  const { variant: names } = trial.memory as FoundMemory;
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

function started(trial: ClaimedTrial, { ledger, batches }: SpecParts): Specified {
  const batch = batches.planOf(trial.batch, () => openBatch(ledger.batches.byKey(trial.batch), ledger));
  const run = batch.runs.find(({ key }) => key === trial.run);
  if (!run) throw new Error(`trial ${trial.key} is of a run that batch ${batch.id} does not have`);
  const { prompt, id: batchId, plan } = batch;
  const setup =
    trial.setup === undefined ? undefined : (ledger.blobs.readJson(trial.setup) as RunRecord['setup']);
  const record = { id: trial.runId, setup };
  return {
    kind: 'ready',
    spec: ownTrialSpec({ ...run, record, prompt, batchId, judges: plan.judges }, trial.ordinal),
  };
}
