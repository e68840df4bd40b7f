import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { oomEventSince } from './oom-events.ts';
import { runQuietly } from './run-quietly.ts';

/**
 * The line of either file is `oom_kill N`; version 1 of control groups has it in memory.oom_control, version
 * 2 in memory.events. An exec'd child that is killed for memory leaves `OOMKilled: false` in the engine's
 * answer. `read` is the shell's own, so that no program of the image is trusted.
 */
const READ_COUNTER = `
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$file" ] || continue
  while read -r key value; do [ "$key" = oom_kill ] && echo "$value"; done < "$file"
done`;

/** Said of containers in which nothing can be run any more. */
const PAST_USE = ['ENGINE_CONTAINER_DAMAGED', 'ENGINE_CONTAINER_STOPPED'];

/**
 * Whether the kernel killed a process of this container for memory since this was last asked; `execId` names
 * the exec it is asked for. One exec, and where that cannot tell, the engine's events: with the memory still
 * full, as when it went to files in /dev/shm, the next process that the kernel kills may be the very one that
 * reads the counter; and a command may have removed its shell.
 */
export async function oomKilledSinceLastAsked(container: RunningContainer, execId: string): Promise<boolean> {
  return noteOomKills(container, await readCounter(container), execId);
}

/** The same, for a counter that was read by other means. NaN is one that could not be read. */
export async function noteOomKills(
  container: RunningContainer,
  counter: number,
  execId: string,
): Promise<boolean> {
  const before = container.oomKills;
  // Unread now, it does not say next time how many of its kills are old.
  container.oomKills = Number.isNaN(counter) ? undefined : counter;
  if (before === undefined || container.oomKills === undefined) return oomEventSince(container, execId);
  return counter > before;
}

async function readCounter(container: RunningContainer): Promise<number> {
  try {
    return Number.parseInt(await runQuietly(container, READ_COUNTER), 10);
  } catch (thrown) {
    // A command that broke its container has a result all the same.
    if (thrown instanceof OffsiteError && PAST_USE.includes(thrown.code)) return Number.NaN;
    throw thrown;
  }
}
