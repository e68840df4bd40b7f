import { readGroupFile } from './group-file.ts';
import type { RunningContainer } from './running-container.ts';

const current = { controller: 'pids', version1: 'pids.current', version2: 'pids.current' } as const;

/**
 * How many processes and threads the kernel counts in the container, init and zombies among them; undefined
 * if this process cannot see the engine's processes. Unlike a list, it is exact at one moment: it also counts
 * processes that fork and exit all the time. A round trip only the first time.
 */
export async function countProcesses(container: RunningContainer): Promise<number | undefined> {
  const count = Number(await readGroupFile(container, current));
  return Number.isInteger(count) && count > 0 ? count : undefined;
}
