import { constants } from 'node:os';
import type { Daemon } from '../../agent/daemon/daemon.ts';

/**
 * Milliseconds within which signals count as one: npm, `timeout` and a terminal's process group deliver the
 * same signal twice.
 */
const togetherMs = 1_000;

/**
 * The first SIGTERM or SIGINT drains the daemon, the second makes it queue its running trials again and end,
 * the third ends the process at once. SIGHUP reads the configuration again. Disposing removes the handlers.
 */
export function obeySignals(
  daemon: Daemon,
  { monotonic, reload }: { monotonic: () => number; reload: () => void },
): Disposable {
  let asked = 0;
  let last = Number.NEGATIVE_INFINITY;
  const end = (name: NodeJS.Signals) => {
    if (monotonic() - last < togetherMs) return;
    last = monotonic();
    asked++;
    if (asked === 1) daemon.drain();
    else if (asked === 2) daemon.cancel();
    else process.exit(128 + (constants.signals[name] ?? 0));
  };
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', reload);
  return {
    [Symbol.dispose]: () => void process.off('SIGTERM', end).off('SIGINT', end).off('SIGHUP', reload),
  };
}
