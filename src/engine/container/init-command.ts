import { writeHosts } from './hosts-file.ts';

/**
 * The container's first process. It ignores SIGCHLD, which survives `exec` and makes the kernel reap orphans.
 * So `sleep` can be the only process: everything else may be killed, and `kill -9 -1` does that. dash cannot
 * ignore SIGCHLD, so this needs bash or, without it, GNU env.
 */
export const initCommand: readonly string[] = [
  '/bin/sh',
  '-c',
  `{ ${writeHosts}; } 2> /dev/null
if command -v bash > /dev/null; then exec bash -c "trap '' CHLD TERM; exec sleep infinity"; fi
exec env --ignore-signal=CHLD,TERM sleep infinity`,
];
