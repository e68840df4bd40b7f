import type { Clock } from '../../clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformLock, servingLock } from '../../ledger/platform.ts';

/** Milliseconds between two tries to take the lock. */
const tryMs = 1_000;

/**
 * Takes the data folder's locks for running platform batches, as a process that serves. Waits while another
 * process has them. Resolves with undefined if the signal aborts.
 *
 * @param parts.waits called once if it has to wait
 */
export async function takeTurn(
  { ledger, clock, waits }: { ledger: Ledger; clock: Clock; waits: () => void },
  signal: AbortSignal,
): Promise<Disposable | undefined> {
  for (let told = false; !signal.aborted; told = true) {
    using taken = new DisposableStack();
    const platform = ledger.takeLock(platformLock);
    if (platform) {
      taken.use(platform);
      // Only a server whose turn it is takes this one.
      const serving = ledger.takeLock(servingLock);
      if (serving) taken.use(serving);
      return taken.move();
    }
    if (!told) waits();
    await clock.sleep(tryMs, signal).catch(() => undefined);
  }
  return undefined;
}
