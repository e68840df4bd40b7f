import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// Reading the sources takes most of a short command's time, so later starts use compiled ones. We name the
// cache folder, because other users may write to the one that Node would choose.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'offsite', 'compiled'));
const { runProgram } = await import('./program.ts');
const { catchTheRest } = await import('./the-rest.ts');
const { openTerminal } = await import('./terminal.ts');

// The reader of our output may be gone (`| head`), or the terminal may be closed. The trials continue, and
// their results are stored and reported.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
  });
}

catchTheRest(openTerminal().err);
process.exitCode = await runProgram(process.argv.slice(2));
