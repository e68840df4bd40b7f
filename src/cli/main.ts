import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { settleHeap } from '../heap.ts';

// Reading the sources takes most of a short command's time; from the second start on they come compiled. Not
// in the folder that Node would choose, which others may write to.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'offsite', 'compiled'));
settleHeap();
const { runProgram } = await import('./program.ts');
const { catchTheRest } = await import('./the-rest.ts');
const { openTerminal } = await import('./terminal.ts');

// Whoever read our output may have gone (`| head`); the trials go on, and their results are kept and
// reported.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

catchTheRest(openTerminal().err);
process.exitCode = await runProgram(process.argv.slice(2));
