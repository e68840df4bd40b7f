import type { EnginePort } from '../port/engine-port.ts';

const ATTEMPTS = 9;
const FIRST_WAIT_MS = 100;
/** All waits together are some 12 s: a busy engine takes seconds for a removal that another request began. */
const LONGEST_WAIT_MS = 3_000;

/**
 * Removes a container and its anonymous volumes, running or not. One that is already gone is fine; one that
 * is being removed is waited for. Other failures are tried again, then thrown.
 */
export async function removeContainer(port: EnginePort, id: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await port.remove('container', id);
    } catch (thrown) {
      // A conflict: another request is removing it, and the next attempt finds it gone. Others may be a busy
      // disk.
      if (attempt === ATTEMPTS) throw thrown;
      await port.clock.sleep(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1)));
    }
  }
}
