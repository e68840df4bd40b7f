import { runProgram } from './program.ts';
import { openTerminal } from './terminal.ts';
import { printUncaught } from './uncaught.ts';

// The reader of our output may be gone (`| head`), or the terminal may be closed. The trials continue, and
// their results are stored and reported.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
  });
}

printUncaught(openTerminal().err);
process.exitCode = await runProgram(process.argv.slice(2));
