import { exitCodes } from './failure.ts';
import { type CrashPlace, lastDefence } from './last-defence.ts';

/** Why work was given up: the user asked. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/**
 * npm, `timeout` and a terminal's process group deliver the same signal twice; what comes within this time,
 * in ms, is one.
 */
const togetherMs = 1_000;

export interface Interruption extends Disposable {
  signal: AbortSignal;
  /** Says where an error that escapes is noted; until then it is only announced. */
  noteCrashesIn(place: CrashPlace): void;
}

/**
 * A signal that aborts at the first SIGINT or SIGTERM, and at an error that escaped, so that the command can
 * put things away; at the next SIGINT or SIGTERM the process ends where it stands. Disposing takes the
 * handlers away.
 */
export function interruption(announce: (message: string) => void): Interruption {
  const controller = new AbortController();
  let first = 0;
  const onSignal = (name: NodeJS.Signals) => {
    if (!controller.signal.aborted) {
      first = performance.now();
      announce(`${name}: stopping the trials and removing their sandboxes; once more ends at once`);
      controller.abort(new Interrupted(name));
    } else if (performance.now() - first > togetherMs) {
      process.exit(exitCodes.interrupted);
    }
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const defence = lastDefence({ announce, stop: (reason) => controller.abort(reason) });
  return {
    signal: controller.signal,
    noteCrashesIn: defence.noteCrashesIn,
    [Symbol.dispose]() {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
      defence[Symbol.dispose]();
    },
  };
}
