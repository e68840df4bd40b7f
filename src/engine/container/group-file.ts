import { readFile, writeFile } from 'node:fs/promises';
import { hostFactsOf, type RunningContainer } from './running-container.ts';

/** A file of a container's control group, by its name in each version. */
interface GroupFile {
  controller: 'freezer' | 'pids' | 'memory';
  version1: string;
  version2: string;
}

/**
 * What the kernel says in a file of the container's control group; undefined if this process cannot see the
 * engine's processes. Nothing in the container can change it. A round trip only the first time.
 */
export function readGroupFile(container: RunningContainer, file: GroupFile): Promise<string | undefined> {
  return atGroupFile(container, file, (path) => readFile(path, 'utf8'));
}

/**
 * Stops all processes of a container where they are, or lets them go on. Resolves with false if this process
 * may not do that. An engine that kills or removes a stopped container lets it go on first.
 */
export async function freeze(container: RunningContainer, isFrozen: boolean): Promise<boolean> {
  const file = { controller: 'freezer', version1: 'freezer.state', version2: 'cgroup.freeze' } as const;
  const done = await atGroupFile(container, file, async (path) => {
    const [version1, version2] = isFrozen ? ['FROZEN', '1'] : ['THAWED', '0'];
    await writeFile(path, path.endsWith(file.version2) ? version2 : version1);
    return true;
  });
  return done ?? false;
}

async function atGroupFile<T>(
  container: RunningContainer,
  file: GroupFile,
  use: (path: string) => Promise<T>,
): Promise<T | undefined> {
  const { initPid } = await hostFactsOf(container);
  try {
    const path = pathOf(await readFile(`/proc/${initPid}/cgroup`, 'utf8'), container.id, file);
    return path === undefined ? undefined : await use(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return undefined;
  }
}

/**
 * If the engine is on another machine, this one may have a process with the same id, so check for the
 * container's id.
 */
function pathOf(
  groups: string,
  id: string,
  { controller, version1, version2 }: GroupFile,
): string | undefined {
  for (const line of groups.split('\n')) {
    const [, controllers, path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (!path.includes(id)) continue;
    if (controllers?.split(',').includes(controller))
      return `/sys/fs/cgroup/${controller}${path}/${version1}`;
    if (controllers === '' && !groups.includes(`:${controller}:`)) return `/sys/fs/cgroup${path}/${version2}`;
  }
  return undefined;
}
