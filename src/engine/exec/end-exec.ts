import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import { killAll } from '../container/kill-all.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { OpenExec } from '../port/containers.ts';
import { isEngineFailure } from '../port/failure.ts';
import { runQuietly } from './run-quietly.ts';

/**
 * The variable that holds an exec's number. Its children inherit it, which distinguishes its processes from
 * those of another exec.
 */
export const execTag = 'OFFSITE_EXEC';

/** Identifies the processes of an exec in its container. */
export interface TaggedExec {
  tag: string;
  user: string | undefined;
}

/** Takes the next number; it counts as running until disposed. */
export function tagExec(container: RunningContainer, user: string | undefined): TaggedExec & Disposable {
  container.execCount += 1;
  const tag = String(container.execCount);
  container.activeExecs.add(tag);
  return { tag, user: user ?? container.user, [Symbol.dispose]: () => container.activeExecs.delete(tag) };
}

/**
 * Kills the processes with the tag, and their process groups. With crun, the group of an exec is led by a
 * process outside the container, so its number is 0, which would mean the group of this script.
 */
const killTaggedScript = `
for file in $(grep -lz "^${execTag}=$1\\$" /proc/[0-9]*/environ 2>/dev/null); do
  dir=\${file%/environ}
  { read -r stat < "$dir/stat"; } 2>/dev/null || continue
  set -- \${stat##*) }
  [ "$3" = 0 ] || kill -9 -"$3" 2>/dev/null
  kill -9 "\${dir#/proc/}" 2>/dev/null
done`;

/**
 * Ends a command whose time is up. No engine call kills an exec, and its children may have left its process
 * group (setsid), so this kills everything in the container but init and checks the result. If another exec
 * is in progress, it kills only the processes with this command's tag; if the command survives that, it kills
 * everything. Resolves when the rest of the output has arrived.
 */
export async function endExec(container: RunningContainer, exec: OpenExec & TaggedExec): Promise<void> {
  const { restarts } = container;
  const others = [...container.activeExecs].some((other) => other !== exec.tag);
  if (others && (await endsAlone(container, exec))) return;
  await killAll(container, { unlessRestartedSince: restarts });
  await streamEnd(container, exec);
}

/** Whether the command ends if only its own processes are killed. */
async function endsAlone(container: RunningContainer, exec: OpenExec & TaggedExec): Promise<boolean> {
  try {
    // Run as the command's user: root without CAP_SYS_PTRACE may not read the environment of another user's
    // process.
    await runQuietly(container, killTaggedScript, { args: [exec.tag], user: exec.user });
    await streamEnd(container, exec);
    return !(await exec.inspect()).running;
  } catch (thrown) {
    // An agent may have replaced the shell, or the end of another command may restart the container.
    if (thrown instanceof OffsiteError && !isEngineFailure(thrown, 'connection')) return false;
    throw thrown;
  }
}

async function streamEnd(container: RunningContainer, exec: OpenExec): Promise<void> {
  using deadline = startDeadline(container.port.clock, commandOutput.time.streamEnd);
  await Promise.race([exec.streamEnded.catch(() => undefined), deadline.reached]);
}
