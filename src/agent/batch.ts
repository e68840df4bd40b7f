import type { SuitePlan } from '../suite/plan.ts';
import { checkSandboxes } from '../trial/base-image.ts';
import { type BatchEvent, type BatchParts, type FinishedBatch, workOff } from './batch-work.ts';
import { resolvePrompt } from './prompt.ts';
import { startBatch } from './start-batch.ts';

export type { BatchEvent, BatchParts, BatchTrial, FinishedBatch, FinishedTrial } from './batch-work.ts';

/**
 * Starts a planned batch at the service, runs its trials, and reports each as soon as it is done. Rejects where the batch cannot be
 * started, a trial cannot be finished, or `signal` aborts; what was finished is in the ledger then, its sandboxes are gone, and
 * `resumeBatch` goes on.
 */
export async function runBatch(
  plan: SuitePlan,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<FinishedBatch> {
  const { client, engine } = parts;
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  await checkSandboxes(engine, sandboxes, signal);
  const prompt = await resolvePrompt(plan, client, signal);
  const { batch, lock } = await startBatch({ plan, prompt }, parts, signal);
  using _lock = lock;
  const finished = await workOff(batch, parts, signal, observe);
  lock.remove();
  return finished;
}
