import { readFile, writeFile } from 'node:fs/promises';
import { abortable, remembered } from '../../base/deadline.ts';
import { putEntries } from '../archive/write-archive.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { type ContainerSpec, isRoot } from './container-spec.ts';
import { hostFactsOf, type RunningContainer } from './running-container.ts';

/** The host name of every container. */
export const hostName = 'sandbox';

const lines = [`127.0.0.1 localhost ${hostName}`, `::1 localhost ip6-localhost ip6-loopback ${hostName}`];

/**
 * The names of the loopback addresses. The engine writes them if it sets up a network; without a network,
 * `/etc/hosts` is empty. A first process that is root writes the file, which needs no round trip. Podman
 * makes the empty file readable for root alone.
 */
export const hostsText = lines.map((line) => `${line}\n`).join('');

/**
 * In a network of the engine, the container's own name resolves to an address that is gone once the container
 * is disconnected. This entry comes first in `/etc/hosts`, and the first line with a name wins.
 */
export const ownAddress = { [hostName]: '127.0.0.1' };

/**
 * Puts the hosts file into a container that is not started yet, if its init cannot write it. One round trip
 * in that case.
 */
export type FillHosts = (id: string, spec: ContainerSpec, signal?: AbortSignal) => Promise<void>;

/** Asks for the user of each image once: one round trip per image, if a container of it names no user. */
export function fillHosts(port: EnginePort): FillHosts {
  const once = remembered<string>();
  const userOf = (imageId: string) =>
    once(imageId, async () => (await port.images.find(imageId))?.user ?? '');
  return async (id, { network, program, user, imageId, hosts = {} }, signal) => {
    // With a network the engine writes the file; Offsite's own programs resolve no names.
    if (network === 'open' || program !== undefined) return;
    const named = Object.entries(hosts).map(([name, address]) => `${address} ${name}`);
    if (named.length === 0 && isRoot(user ?? (await abortable(userOf(imageId), signal)))) return;
    const content = [...lines, ...named].map((line) => `${line}\n`).join('');
    await putEntries({ port, id }, [{ path: 'etc/hosts', content }], '/', signal);
  };
}

/** A file of a container's control group, by its name in each version. */
interface GroupFile {
  controller: 'freezer' | 'pids' | 'memory';
  version1: string;
  version2: string;
}

/**
 * What the kernel says in a file of the container's control group; undefined if this process cannot see the
 * engine's processes. Nothing in the container can change it.
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
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
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
