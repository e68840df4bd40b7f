import type { Logger } from 'pino';
import type { Daemon } from '../../agent/daemon/daemon.ts';
import { exitCodes } from '../exit-codes.ts';
import { leftBehind } from '../interruption.ts';

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
  { log, monotonic, reload }: { log: Logger; monotonic: () => number; reload: () => void },
): Disposable {
  let asked = 0;
  let last = Number.NEGATIVE_INFINITY;
  const end = (name: NodeJS.Signals) => {
    if (monotonic() - last < togetherMs) return;
    last = monotonic();
    asked++;
    if (asked === 1) daemon.drain();
    else if (asked === 2) daemon.cancel();
    else {
      log.warn({ signal: name }, `ended at once. ${leftBehind}`);
      process.exit(exitCodes.interrupted);
    }
  };
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', reload);
  return {
    [Symbol.dispose]: () => void process.off('SIGTERM', end).off('SIGINT', end).off('SIGHUP', reload),
  };
}
