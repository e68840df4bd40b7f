import { OffsiteError } from '../../offsite-error.ts';
import type { EngineClient } from '../connection/engine-client.ts';
import { engineStatus } from '../failure.ts';

const ATTEMPTS = 9;
const FIRST_WAIT_MS = 100;
/** All waits together are some 12 s: a busy engine takes seconds for a removal that another request began. */
const LONGEST_WAIT_MS = 3_000;

/**
 * Removes a container and its anonymous volumes, running or not. One that is already gone is fine; one that is
 * being removed is waited for. Other failures are tried again, then thrown.
 */
export async function removeContainer(client: EngineClient, id: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.call('removing a container', (abortSignal) =>
        client.docker.getContainer(id).remove({ force: true, v: true, abortSignal }),
      );
      return;
    } catch (thrown) {
      if (thrown instanceof OffsiteError && engineStatus(thrown.cause) === 404) return;
      // 409: another request is removing it; the next attempt finds it gone. Others may be a busy file system.
      if (attempt === ATTEMPTS) throw thrown;
      await client.clock.sleep(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)));
    }
  }
}
