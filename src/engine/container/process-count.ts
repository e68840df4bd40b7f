import { readFile } from 'node:fs/promises';
import { hostFactsOf } from './host-facts.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * How many processes and threads the kernel counts in the container, init and zombies among them; undefined
 * if this process cannot see the engine's processes. Unlike a list, it is exact at one moment: it also counts
 * processes that fork and exit all the time. A round trip only the first time.
 */
export async function countProcesses(container: RunningContainer): Promise<number | undefined> {
  const { initPid } = await hostFactsOf(container);
  try {
    const group = pidsGroup(await readFile(`/proc/${initPid}/cgroup`, 'utf8'), container.id);
    if (group === undefined) return undefined;
    const count = Number(await readFile(`${group}/pids.current`, 'utf8'));
    return Number.isInteger(count) && count > 0 ? count : undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return undefined;
  }
}

/**
 * Its folder, in control groups version 1 or 2. Another machine may have a process with the same number, so
 * check for the container's id.
 */
function pidsGroup(groups: string, id: string): string | undefined {
  for (const line of groups.split('\n')) {
    const [, controllers, path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (!path.includes(id)) continue;
    if (controllers?.split(',').includes('pids')) return `/sys/fs/cgroup/pids${path}`;
    if (controllers === '' && !groups.includes(':pids:')) return `/sys/fs/cgroup${path}`;
  }
  return undefined;
}
