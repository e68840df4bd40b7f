import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

// Reading the sources takes most of a short command's time; from the second start on they come compiled. Not in the folder that Node
// would choose, which others may write to.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'offsite', 'compiled'));
// A sandbox's output passes through this process in many short-lived buffers: a young heap that may grow keeps 100 MB of them.
setFlagsFromString('--semi-space-growth-factor=1');
// An old heap that may grow to several times what lives in it keeps as much of the trials that are over. Measured: no slower.
setFlagsFromString('--optimize-for-size');
const { runProgram } = await import('./program.ts');

// Whoever read our output may have gone (`| head`); the trials go on, and their results are kept and reported.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

process.exitCode = await runProgram(process.argv.slice(2));
