import { readFileSync, readlinkSync } from 'node:fs';

/** Where ids of processes mean the same: this boot of the machine, and the namespace. */
const place = (() => {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return undefined;
  }
})();

/**
 * This process, as others on its machine find it: its place, its id, and when it started, because an id is
 * used again. Empty where the system does not tell.
 */
export const ownProcess = place === undefined ? '' : `${place} ${process.pid} ${startOf(process.pid)}`;

/**
 * Whether the process that {@link ownProcess} named has ended; undefined if that cannot be seen from here: it
 * is on another machine, or in a container with processes of its own.
 */
export function hasProcessEnded(named: string): boolean | undefined {
  const [, there, id, started] = /^(.+) (\d+) (\d+)$/.exec(named) ?? [];
  if (there === undefined || there !== place) return undefined;
  try {
    process.kill(Number(id), 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true;
  }
  // A system may hide other users' processes. Then all that is known is that one has this id.
  const found = startOf(Number(id));
  return found !== undefined && found !== started;
}

/** In ticks since the boot. `ended` if the process is only still listed; undefined if it cannot be seen. */
function startOf(id: number): string | undefined {
  try {
    // The name before it, in parentheses, may have any characters.
    const fields = readFileSync(`/proc/${id}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[0] === 'Z' || fields[0] === 'X' ? 'ended' : fields[19];
  } catch {
    return undefined;
  }
}
