import type { Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { BatchHandle, HeldTrial } from './batch-handle.ts';
import type { SeenWorker } from './seen-workers.ts';
import { waitingTrials } from './status.ts';
import type { FleetStorage } from './storage/storage.ts';
import type { BatchOutcome, BatchProgress, WaitingTrials } from './workflow/messages.ts';

export interface WatchParts {
  clock: Clock;
  workers(): Promise<SeenWorker[]>;
  /** The fleet's. */
  taskQueue: string;
  storage: FleetStorage | undefined;
  observe(event: WatchEvent): void;
}

export type WatchEvent =
  | { kind: 'progress'; progress: BatchProgress }
  /** The trials that workers hold now. */
  | { kind: 'held'; trials: HeldTrial[] }
  /** The trials that no worker can run, if there are others than before. */
  | { kind: 'waiting'; waiting: WaitingTrials[] }
  | { kind: 'note'; message: string };

/** Milliseconds between two looks, and before another try when nobody answered. */
const lookMs = 1_000;
const againMs = 3_000;
/** Milliseconds between two looks for trials that no worker can run, in a fleet of at most 100 workers. */
const waitingMs = 3_000;

/**
 * Follows a batch until its workflow ends. Resolves with how it ended; undefined if it was canceled. Waits
 * while the server or the workers do not answer.
 */
export async function watchBatch(
  batch: BatchHandle,
  parts: WatchParts,
  signal: AbortSignal,
): Promise<BatchOutcome | undefined> {
  const { clock, observe } = parts;
  const waits = new WaitingWatch(parts);
  const seen = new Map<string, number>();
  let lastReason: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      const { status, open, memo } = await batch.standing();
      observe({ kind: 'held', trials: open });
      const hasScheduled = status === 'RUNNING' && open.some(({ phase }) => phase === undefined);
      const isStuck = status === 'RUNNING' && open.length === 0;
      // Only workers answer queries of the workflow, so without one, `progress` would fail.
      if (isStuck && (await waits.look(memo, undefined))) {
        await clock.sleep(lookMs, signal);
        continue;
      }
      const more = await batch.progress(seen);
      if (hasScheduled) await waits.look(memo, more);
      observe({ kind: 'progress', progress: more });
      lastReason = undefined;
      const isRead = more.results.length === 0;
      if (isRead && status !== 'RUNNING') return await endOf(batch, status);
      if (!isRead) continue;
    } catch (error) {
      if (error instanceof OffsiteError) throw error;
      const reason = messageOf(error);
      if (reason !== lastReason) observe({ kind: 'note', message: `the fleet does not answer: ${reason}` });
      lastReason = reason;
      await clock.sleep(againMs, signal);
    }
    await clock.sleep(lookMs, signal);
  }
}

/** Finds out which trials wait because no worker can run them. */
class WaitingWatch {
  readonly #parts: WatchParts;
  #nextAt = 0;
  #lastWaiting = '[]';

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /**
   * Resolves with whether trials waited in the last look.
   *
   * @param progress undefined if it is not known: then only a fleet without workers for the batch is reported
   */
  async look(memo: Record<string, unknown>, progress: BatchProgress | undefined): Promise<boolean> {
    const { clock, workers, taskQueue, storage, observe } = this.#parts;
    if (clock.now() < this.#nextAt) return this.#lastWaiting !== '[]';
    const seen = await workers();
    // A look reads the profile of each worker, so a large fleet is looked at less often.
    this.#nextAt = clock.now() + waitingMs * Math.max(1, seen.length / 100);
    const waiting = waitingTrials(memo, progress, { seen, taskQueue, storage });
    const isNews = JSON.stringify(waiting) !== this.#lastWaiting;
    this.#lastWaiting = JSON.stringify(waiting);
    if (isNews && waiting.length > 0) observe({ kind: 'waiting', waiting });
    return waiting.length > 0;
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
