import { writeHosts } from './hosts-file.ts';

/**
 * The container's first process. It ignores SIGCHLD, an attitude that survives `exec` and makes the kernel
 * reap orphans by itself, so that `sleep` can be the only process there is: everything else may be killed,
 * and `kill -9 -1` does it. dash cannot ignore SIGCHLD, hence bash or, without it, GNU env.
 */
export const INIT_COMMAND: readonly string[] = [
  '/bin/sh',
  '-c',
  `{ ${writeHosts}; } 2> /dev/null
if command -v bash > /dev/null; then exec bash -c "trap '' CHLD TERM; exec sleep infinity"; fi
exec env --ignore-signal=CHLD,TERM sleep infinity`,
];
