import type { Clock } from '../clock.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { BatchHandle, HeldTrial } from './batch-handle.ts';
import type { BatchOutcome, BatchProgress } from './workflow/messages.ts';

export interface WatchParts {
  clock: Clock;
  observe(event: WatchEvent): void;
}

export type WatchEvent =
  | { kind: 'progress'; progress: BatchProgress }
  /** The trials that workers hold now. */
  | { kind: 'held'; trials: HeldTrial[] }
  | { kind: 'note'; message: string };

/** Milliseconds between two looks, and before another try when nobody answered. */
const lookMs = 1_000;
const againMs = 3_000;

/**
 * Follows a batch until its workflow ends. Resolves with how it ended; undefined if it was canceled. While server
 * or workers do not answer, it waits for them.
 */
export async function watchBatch(
  batch: BatchHandle,
  { clock, observe }: WatchParts,
  signal: AbortSignal,
): Promise<BatchOutcome | undefined> {
  const seen = new Map<string, number>();
  let told: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      const { status, open } = await batch.standing();
      observe({ kind: 'held', trials: open });
      const more = await batch.progress(seen);
      observe({ kind: 'progress', progress: more });
      told = undefined;
      const isRead = more.results.length === 0;
      if (isRead && status !== 'RUNNING') return await endOf(batch, status);
      if (!isRead) continue;
    } catch (error) {
      if (error instanceof OffsiteError) throw error;
      const reason = messageOf(error);
      if (reason !== told) observe({ kind: 'note', message: `the fleet does not answer: ${reason}` });
      told = reason;
      await clock.sleep(againMs, signal);
    }
    await clock.sleep(lookMs, signal);
  }
}

async function endOf(batch: BatchHandle, status: string): Promise<BatchOutcome | undefined> {
  if (status === 'COMPLETED') return batch.outcome();
  if (status === 'CANCELLED' || status === 'TERMINATED') return undefined;
  throw new OffsiteError(`the workflow of batch ${batch.id} ended as ${status}`, {
    code: 'FLEET_BATCH_FAILED',
    kind: 'infrastructure',
    hint: "Temporal's UI shows its history.",
  });
}
