import { type BackoffLimits, backoff } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';

/** Tries to put a finished result on disk, the first included. */
const tries = 5;

/** Milliseconds. */
const waits: BackoffLimits = { first: 1_000, longest: 8_000 };

/**
 * Puts a finished result on disk. Where the disk does not take it, the result stays in memory and is tried again a few times: others
 * may make room. Rejects with the last error, after saying so.
 */
export async function storeResult(
  store: () => Promise<void>,
  { clock, random, note }: { clock: Clock; random: () => number; note: (message: string) => void },
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store();
    } catch (error) {
      // A defect of ours does not go away by waiting.
      if (!(error instanceof OffsiteError) || attempt >= tries || signal.aborted) throw error;
      note(`the result cannot be stored and is kept in memory: ${messageOf(error)}`);
    }
    await clock.sleep(backoff(attempt, waits, random), signal);
  }
}
