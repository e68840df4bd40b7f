import { type BackoffLimits, backoff, noJitter } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { EngineSilent } from '../connection/ending.ts';
import type { EnginePort } from '../port/engine-port.ts';

const attemptCount = 9;
/**
 * All waits together are about 12 s: a busy engine takes seconds for a removal that another request began. So
 * each wait has its full length, without jitter.
 */
const waits: BackoffLimits = { first: 100, longest: 3_000 };

/**
 * Removes a container and its anonymous volumes, running or not. It may already be gone; if another request
 * is removing it, this waits. Other failures are retried, then thrown.
 */
export async function removeContainer(port: EnginePort, id: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await port.remove('container', id);
    } catch (thrown) {
      // On a conflict another request is removing it, and the next attempt finds it gone. Other failures may
      // come from a busy disk.
      if (attempt === attemptCount || isGone(thrown)) throw thrown;
      await port.clock.sleep(backoff(attempt, waits, noJitter));
    }
  }
}

/**
 * For `catch` of a removal. All remaining containers of this Offsite process are removed when the engine is
 * disposed, so a failure of the engine must not hide what happened before.
 */
export function ignoreRemovalFailure(error: unknown): void {
  if (!(error instanceof OffsiteError)) throw error;
}

function isGone(thrown: unknown): boolean {
  return thrown instanceof OffsiteError && thrown.cause instanceof EngineSilent;
}
