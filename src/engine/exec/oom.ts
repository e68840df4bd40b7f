import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { runQuietly } from './run-quietly.ts';

/**
 * The line of either file is `oom_kill N`; version 1 of control groups has it in memory.oom_control, version 2 in
 * memory.events. An exec'd child that is killed for memory leaves `OOMKilled: false` in the engine's answer, so this
 * counter is the only witness. `read` is the shell's own, so that no program of the image is trusted.
 */
const READ_COUNTER = `
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$file" ] || continue
  while read -r key value; do [ "$key" = oom_kill ] && echo "$value"; done < "$file"
done`;

/** Whether the kernel killed a process of this container for memory since this was last asked. One exec. */
export async function oomKilledSinceLastAsked(container: RunningContainer): Promise<boolean> {
  try {
    return noteOomKills(container, Number.parseInt(await runQuietly(container, READ_COUNTER), 10));
  } catch (thrown) {
    // A command that broke its container has a result all the same.
    if (thrown instanceof OffsiteError && thrown.code === 'ENGINE_CONTAINER_DAMAGED') return false;
    throw thrown;
  }
}

/** The same, for a counter that was read by other means. NaN, where no counter is readable, counts as "no". */
export function noteOomKills(container: RunningContainer, counter: number): boolean {
  const more = counter > container.oomKills;
  if (more) container.oomKills = counter;
  return more;
}
