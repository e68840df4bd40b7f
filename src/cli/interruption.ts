import { exitCodes } from './exit-codes.ts';
import { type CrashRecord, lastDefence } from './last-defence.ts';

/** The reason why work was aborted: the user interrupted it. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/**
 * Milliseconds within which signals count as one: npm, `timeout` and a terminal's process group deliver the
 * same signal twice.
 */
export const togetherMs = 1_000;

/** What most commands do when they are interrupted. */
export const stoppingTrials = 'stopping the trials and removing their sandboxes';

/** What ending at once means. */
const leftBehind =
  'Sandboxes may be left on the engine; the next command that runs trials there removes them.';

/**
 * Ends a program that works until it is stopped: the first SIGTERM or SIGINT calls `first`, the second
 * `second`, the third ends the process. Disposing removes the handlers.
 */
export function endInSteps(steps: {
  first(): void;
  second(): void;
  warn(fields: { signal: NodeJS.Signals }, message: string): void;
}): Disposable {
  let asked = 0;
  let last = Number.NEGATIVE_INFINITY;
  const end = (signal: NodeJS.Signals) => {
    if (performance.now() - last < togetherMs) return;
    last = performance.now();
    asked++;
    if (asked === 1) steps.first();
    else if (asked === 2) steps.second();
    else {
      steps.warn({ signal }, `ended at once. ${leftBehind}`);
      process.exit(exitCodes.interrupted);
    }
  };
  process.on('SIGTERM', end).on('SIGINT', end);
  return { [Symbol.dispose]: () => void process.off('SIGTERM', end).off('SIGINT', end) };
}

/** Milliseconds between two lines that say that the command is still ending. */
const stillMs = 5_000;

export interface Interruption extends Disposable {
  signal: AbortSignal;
  /** Sets where to note an error that escapes. Before this call such an error is only announced. */
  noteCrashesIn(record: CrashRecord): void;
}

export interface InterruptionOptions {
  /** Says what the command does when it is interrupted. Called when the signal arrives. */
  doing?: () => string;
  /** The signals. Default: SIGINT, SIGTERM, and SIGHUP, which a closed terminal sends. */
  names?: readonly NodeJS.Signals[];
}

/**
 * A signal that aborts at the first signal, and at an error that escapes, so that the command can
 * clean up. The next signal ends the process at once. Disposing removes the handlers.
 *
 * @param doing says what the command does then, for people
 */
export function interruption(
  announce: (message: string) => void,
  { doing = () => stoppingTrials, names = ['SIGINT', 'SIGTERM', 'SIGHUP'] }: InterruptionOptions = {},
): Interruption {
  const controller = new AbortController();
  let first = 0;
  let still: NodeJS.Timeout | undefined;
  const onSignal = (name: NodeJS.Signals) => {
    if (!controller.signal.aborted) {
      first = performance.now();
      announce(`${name}: ${doing()}; a second signal ends at once`);
      controller.abort(new Interrupted(name));
      const seconds = () => Math.round((performance.now() - first) / 1_000);
      still = setInterval(() => announce(`still ${doing()}, for ${seconds()} s`), stillMs).unref();
    } else if (performance.now() - first > togetherMs) {
      announce(`${name}: ended at once. ${leftBehind}`);
      process.exit(exitCodes.interrupted);
    }
  };
  for (const name of names) process.on(name, onSignal);
  const defence = lastDefence({ announce, stop: (reason) => controller.abort(reason) });
  return {
    signal: controller.signal,
    noteCrashesIn: defence.noteCrashesIn,
    [Symbol.dispose]() {
      for (const name of names) process.off(name, onSignal);
      clearInterval(still);
      defence[Symbol.dispose]();
    },
  };
}
