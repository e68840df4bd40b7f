import type { RunningContainer } from '../container/running-container.ts';
import type { ExecState, OpenExec } from '../port/exec.ts';
import { execLost } from '../port/failure.ts';
import { execTag, type TaggedExec } from './end-exec.ts';
import { runQuietly } from './run-quietly.ts';

/** The engine may need a moment to record the exit of a process whose output has ended. */
const notedWithinMs = [0, 5, 10, 20, 40];
const slowestPollMs = 250;
/** 128 + SIGKILL. */
export const killedExitCode = 137;
/** 128 + SIGTERM. */
const terminatedExitCode = 143;

/**
 * Prints the targets of stdout and stderr of the tagged process that the engine itself started (parent 0).
 */
const leaderOutputsScript = `
for file in $(grep -lz "^${execTag}=$1\\$" /proc/[0-9]*/environ 2>/dev/null); do
  dir=\${file%/environ}
  { read -r stat < "$dir/stat"; } 2>/dev/null || continue
  set -- \${stat##*) }
  [ "$2" = 0 ] && readlink "$dir/fd/1" "$dir/fd/2"
done`;

/**
 * Waits until the engine records the end of a command whose stream has ended, and resolves with its state. If
 * the stream ends but the process continues, either the process closed its outputs or the connection was cut.
 * The process's descriptors show which: if stdout is still a pipe, output was lost and this throws.
 */
export async function finalState(
  container: RunningContainer,
  exec: OpenExec & TaggedExec,
  signal: AbortSignal,
): Promise<ExecState> {
  const { clock } = container.port;
  for (const wait of notedWithinMs) {
    await clock.sleep(wait, signal);
    const state = await exec.inspect();
    if (state.running) continue;
    // If a client is cut off, the engine terminates the command a moment later.
    if (wait > 0 && state.exitCode === terminatedExitCode) throw cutOff();
    return state;
  }
  const outputs = await runQuietly(container, leaderOutputsScript, { args: [exec.tag], user: exec.user });
  if (outputs.includes('pipe:')) throw cutOff();
  for (let wait = notedWithinMs.length * 10; ; wait = Math.min(wait * 2, slowestPollMs)) {
    const state = await exec.inspect();
    if (!state.running) return state;
    await clock.sleep(wait, signal);
  }
}

function cutOff() {
  return execLost(
    'The connection to the engine was cut while a command ran; the rest of its output is lost.',
  );
}

/** Returns the exit code, or throws an infrastructure error: an unknown one is never read as 0. */
export function knownExitCode(state: ExecState): number {
  if (state.exitCode === null || state.exitCode === undefined) {
    throw execLost('The engine does not know the exit code of a command.');
  }
  return state.exitCode;
}
