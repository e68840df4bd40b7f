import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';

/**
 * A control group in each hierarchy of this machine, for an engine and all that it starts. Its disposal ends
 * every process in them, and removes them.
 */
export interface Groups extends AsyncDisposable {
  /**
   * The files into which a process writes its id to join the groups. If the groups are its roots, it sees no
   * others.
   */
  roots: readonly string[];
  /**
   * The same for the engine's own processes. With version 2, the roots themselves must not have processes.
   */
  engine: readonly string[];
}

export async function makeGroups(name: string): Promise<Groups> {
  const { all, unified } = await hierarchies();
  const folders = all.map((path) => join(path, name));
  for (const folder of folders)
    for (const path of [folder, join(folder, 'engine')]) {
      await mkdir(path);
      await inheritProcessors(path);
    }
  const tasks = (folder: string) => join(folder, 'cgroup.procs');
  return {
    roots: folders.map(tasks),
    engine: folders.map((folder) => tasks(join(folder, 'engine'))),
    async [Symbol.asyncDispose]() {
      await endGroup(join(unified, name));
      for (const folder of folders) await removeGroup(folder);
    },
  };
}

/** The folders of all hierarchies, and the one of version 2: the only one, or beside those of version 1. */
async function hierarchies(): Promise<{ all: string[]; unified: string }> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  const found = [...mounts.matchAll(/^\S+ (\S+) (cgroup2?) /gm)];
  const unified = found.find(([, , type]) => type === 'cgroup2')?.[1];
  if (unified === undefined) throw new Error('an engine for tests needs control groups, version 2');
  return { all: found.map(([, path = '']) => path), unified };
}

/** With version 1, a group accepts processes only after its processors and its memory nodes are set. */
async function inheritProcessors(group: string): Promise<void> {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    const path = join(group, file);
    if (existsSync(path)) await writeFile(path, await readFile(join(group, '..', file), 'utf8'));
  }
}

/** Ends each process of the group and of those below it. */
async function endGroup(group: string): Promise<void> {
  await writeFile(join(group, 'cgroup.kill'), '1');
  for (
    let waits = 0;
    (await readFile(join(group, 'cgroup.events'), 'utf8')).includes('populated 1');
    waits++
  ) {
    if (waits > 600) throw new Error(`the processes of ${group} survive SIGKILL`);
    await systemClock.sleep(50);
  }
}

async function removeGroup(path: string): Promise<void> {
  if (!existsSync(path)) return;
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await removeGroup(join(path, entry.name));
  await rmdir(path).catch(() => undefined); // a process of it is still being taken down
}
