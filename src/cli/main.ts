import type { Output } from '../text/output.ts';
import { lines, text } from '../text/printable.ts';
import { exitCodes } from './exit-codes.ts';
import { printFailure } from './failure.ts';
import { runProgram } from './program.ts';
import { openTerminal } from './terminal.ts';

// The reader of our output may be gone (`| head`), or the terminal may be closed. The trials continue, and
// their results are stored and reported.
// Output that a full disk does not take is missing, so the command has not done what it was asked for.
let isCut = false;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || error.code === 'EIO' || isCut) return;
    isCut = true;
    process.exitCode = exitCodes.infrastructure;
    if (stream === process.stdout)
      openTerminal().err.print(`the output could not be written as a whole: ${error.message}`);
  });
}

printUncaught(openTerminal().err);
const exitCode = await runProgram(process.argv.slice(2));
process.exitCode = isCut && exitCode === exitCodes.done ? exitCodes.infrastructure : exitCode;

/**
 * Prints warnings of libraries and uncaught errors through our own output, which makes their text safe for a
 * terminal. Node would print them unchanged.
 */
function printUncaught(err: Output): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => err.print(text`${name}: ${lines(message)}`));
  process.on('uncaughtException', (error) => process.exit(printFailure(error, err)));
}
