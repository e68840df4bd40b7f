import { containerDamaged } from '../failure.ts';
import { isEngineFailure } from '../port/failure.ts';
import { pathFacts } from './archives.ts';
import type { DockerClient } from './client.ts';

/** Milliseconds until a path that was not found is looked for again. */
const againMs = 500;

interface Measured {
  SizeRw?: number;
  HostnamePath?: string;
  HostsPath?: string;
  ResolvConfPath?: string;
}

/**
 * Bytes of the container's layer and of the files that the engine mounts into it from its own folder. A
 * process that is root can write to those too, without limit, and the engine's size leaves them out. A
 * container without a network has one such file, which takes a round trip more; one on a network has three.
 */
export async function writtenBytes(client: DockerClient, id: string, signal?: AbortSignal): Promise<number> {
  const { SizeRw, HostnamePath, HostsPath, ResolvConfPath } = await client.ask<Measured>(
    'measuring what a container wrote',
    { method: 'GET', path: `/containers/${id}/json?size=true` },
    { signal },
  );
  const mounted = [
    ...(HostnamePath ? ['/etc/hostname'] : []),
    ...(HostsPath ? ['/etc/hosts'] : []),
    ...(ResolvConfPath ? ['/etc/resolv.conf'] : []),
  ];
  const sizes = await Promise.all(mounted.map((path) => sizeOf(client, id, path, signal)));
  // The engine leaves out a zero.
  return sizes.reduce((sum, size) => sum + size, SizeRw ?? 0);
}

async function sizeOf(
  client: DockerClient,
  id: string,
  path: string,
  signal: AbortSignal | undefined,
): Promise<number> {
  for (let isLast = false; ; isLast = true) {
    try {
      return (await pathFacts(client, id, path, signal)).bytes;
    } catch (thrown) {
      // The engine finds the path from the container's root, where an agent may have moved its folder away.
      const isMissing = isEngineFailure(thrown, 'not-found') || isEngineFailure(thrown, 'refused');
      if (!isMissing) throw thrown;
      if (isLast) throw containerDamaged(`The engine does not find ${path} any more.`, thrown);
      // An engine may also be short of something for a moment.
      await client.clock.sleep(againMs, signal);
    }
  }
}
