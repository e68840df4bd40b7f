import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import { readGroupFile } from '../container/hosts-file.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { ExecState, OpenExec } from '../port/containers.ts';
import { execLost } from '../port/failure.ts';
import { execTag, type TaggedExec } from './end-exec.ts';
import { outputOf, runQuietly } from './run-quietly.ts';

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

/**
 * Both files have a line `oom_kill N`. An exec'd child that is killed for memory leaves `OOMKilled: false` in
 * the engine's answer.
 */
const killCount = {
  controller: 'memory',
  version1: 'memory.oom_control',
  version2: 'memory.events',
} as const;

/** Error codes of containers in which nothing can run any more. */
const unusableContainerCodes = ['ENGINE_CONTAINER_DAMAGED', 'ENGINE_CONTAINER_STOPPED'];

/**
 * Whether the kernel killed a process of this container for memory since the last call; `execId` is the exec
 * in question, undefined for a command that init started. Uses one exec where the kernel's counter cannot be
 * read from outside, and the engine's events if that fails: memory may still be full (files in /dev/shm
 * count), so that the kernel kills the process that reads the counter.
 */
export async function oomKilledSinceLastAsked(
  container: RunningContainer,
  execId: string | undefined,
): Promise<boolean> {
  return noteOomKills(container, await readCounter(container), execId);
}

/** The same, for a counter that was read in another way. NaN means that it could not be read. */
export async function noteOomKills(
  container: RunningContainer,
  counter: number,
  execId: string | undefined,
): Promise<boolean> {
  const before = container.oomKills;
  // If it cannot be read now, the next reading cannot tell which kills are old.
  container.oomKills = Number.isNaN(counter) ? undefined : counter;
  if (before === undefined || container.oomKills === undefined) return oomEventSince(container, execId);
  return counter > before;
}

async function readCounter(container: RunningContainer): Promise<number> {
  try {
    const inside = async () => container.own && outputOf(container, [container.own.init]);
    const text = (await readGroupFile(container, killCount)) ?? (await inside()) ?? '';
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1]);
  } catch (thrown) {
    // A command that broke its container still has a result.
    if (thrown instanceof OffsiteError && unusableContainerCodes.includes(thrown.code)) return Number.NaN;
    throw thrown;
  }
}

/**
 * Whether the engine noticed that the kernel killed a process of this container for memory since the exec
 * `execId` began. The engine's events need no process inside the container and nothing from its image. But
 * they are slower than the counter, and "no" takes a wait. One round trip.
 */
async function oomEventSince({ port, id }: RunningContainer, execId: string | undefined): Promise<boolean> {
  if (port.containers.events === undefined) return false;
  using deadline = startDeadline(port.clock, processEnds.time.memoryEvent);
  // Uses the order of the events, so the clocks of the two machines need not agree.
  let began = false;
  let killed = false;
  for await (const event of port.containers.events(id, deadline.signal)) {
    if (event.kind === 'oom') {
      killed = true;
      if (began) break;
    } else if (
      event.kind === 'exec-started' ? event.execId === execId : event.kind === 'started' && !execId
    ) {
      began = true;
      // Ignore kills from before the exec began. The engine keeps only the last few hundred events: if the
      // exec's start event is lost, so are all events before it.
      killed = false;
    }
  }
  return killed;
}
