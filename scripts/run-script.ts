import { OffsiteError } from '../src/base/offsite-error.ts';
import { Interruption } from './interruption.ts';

/**
 * Runs a script's work and sets the process's exit code: the work's own, 2 if the user has to act, 3 if a
 * machine or network failed. Ctrl-C aborts the signal, and the work ends in its own way; a second Ctrl-C ends
 * the process. `lastLine` is printed after everything else, whatever happened.
 */
export async function runScript(
  work: (signal: AbortSignal) => Promise<number>,
  lastLine?: () => string,
): Promise<void> {
  const signal = interruptions();
  try {
    process.exitCode = await work(signal);
  } catch (error) {
    process.exitCode = printError(error);
  }
  if (lastLine !== undefined) console.log(lastLine());
}

/**
 * npm and a terminal's process group deliver the same Ctrl-C twice. Signals within this time, in ms, count as
 * one.
 */
const togetherMs = 1_000;

function interruptions(): AbortSignal {
  const controller = new AbortController();
  let first = 0;
  const interrupt = (name: NodeJS.Signals) => {
    const interruption = new Interruption(name);
    if (!controller.signal.aborted) {
      first = performance.now();
      controller.abort(interruption);
    } else if (performance.now() - first > togetherMs) {
      process.exit(interruption.exitCode);
    }
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, interrupt);
  return controller.signal;
}

function printError(error: unknown): number {
  if (error instanceof Interruption) {
    console.error(`\n${error.message}`);
    return error.exitCode;
  }
  if (error instanceof OffsiteError) {
    console.error(`\n${error.message}${error.hint === undefined ? '' : `\n${error.hint}`}`);
    return error.kind === 'input' ? 2 : 3;
  }
  console.error(error); // a defect of Offsite: with its stack
  return 1;
}
