import type { Clock } from '../../base/clock.ts';

/** Milliseconds without a line after which a display without live lines says that work continues. */
const silenceMs = 15_000;

export interface Heartbeat extends Disposable {
  /** Notes that something was printed. */
  printed(): void;
}

/** Calls `beat` when nothing was printed for 15 s, and at most once in 15 s. Disposing ends that. */
export function heartbeat(clock: Clock, beat: () => void): Heartbeat {
  const over = new AbortController();
  let printedAt = clock.now();
  const listen = async () => {
    for (let waitMs = silenceMs; ; ) {
      await clock.sleep(waitMs, over.signal);
      const silentMs = clock.now() - printedAt;
      // A clock that was set back must not keep it silent.
      const isDue = silentMs >= silenceMs || silentMs < 0;
      waitMs = isDue ? silenceMs : silenceMs - silentMs;
      if (!isDue) continue;
      beat();
      printedAt = clock.now();
    }
  };
  listen().catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return {
    printed() {
      printedAt = clock.now();
    },
    [Symbol.dispose]: () => over.abort(),
  };
}
