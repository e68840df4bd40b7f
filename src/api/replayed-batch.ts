import { recordedModels, requireRecorded } from '../agent/ledger-cassette.ts';
import { readPlan } from '../agent/stored-plan.ts';
import { findBatch } from '../ledger/find.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { PlannedReplay } from '../suite/plan.ts';
import type { Context } from './context.ts';

export type OnMiss = 'fail' | 'live';

interface ReplayedBatch {
  replay: PlannedReplay;
  /** The models to plan with: those of the configuration, and those that only the recorded batch knows. */
  models: Record<string, ModelConfig>;
}

/**
 * The batch whose recorded answers take the place of models. Throws as {@link findBatch} does, and
 * `NOT_RECORDED`.
 */
export function replayedBatch(context: Context, reference: string, onMiss: OnMiss): ReplayedBatch {
  const ledger = context.ledger();
  const batch = findBatch(ledger.records, reference);
  requireRecorded(ledger, batch);
  const live = onMiss === 'live' ? 'missing' : 'never';
  const replay: PlannedReplay = { batch: batch.key, name: batch.id, live };
  const { models } = context.config;
  // A live model needs its configuration.
  if (live !== 'never' || batch.plan === undefined) return { replay, models };
  const { plan } = readPlan(ledger.blobs.readJson(batch.plan));
  return { replay, models: { ...recordedModels(plan, batch.id), ...models } };
}
