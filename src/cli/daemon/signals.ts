import { constants } from 'node:os';
import type { Daemon } from '../../agent/daemon/daemon.ts';

/**
 * npm, `timeout` and a terminal's process group deliver the same signal twice; what comes within this time,
 * in ms, is one.
 */
const togetherMs = 1_000;

/**
 * The first SIGTERM or SIGINT drains the daemon, the second has it put its trials back and end, the third
 * ends the process where it stands. SIGHUP reads the configuration again. Disposing takes the handlers away.
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
