import { storedFiles } from '../archive/stored-file.ts';
import type { DockerClient } from '../docker/client.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';

/** The volume that holds the filters of system calls. It stays, as the base image does. */
const volume = 'offsite-filters';

export interface Filters {
  /**
   * The path of a file with this filter on the engine's machine. `helper`: any image will do, and a sweep
   * needs the labels.
   */
  pathOf(filter: string, helper: Pick<ContainerRequest, 'imageId' | 'labels'>): Promise<string>;
}

/**
 * Podman reads a filter of system calls from a file on its own machine, and its API takes no content. So each
 * filter is a file in a volume.
 */
export function filterFiles(client: DockerClient, port: () => EnginePort): Filters {
  const paths = new Map<string, Promise<string>>();
  return {
    pathOf(filter, helper) {
      const known = paths.get(filter);
      if (known !== undefined) return known;
      const path = storeFilter(client, port(), filter, helper);
      paths.set(filter, path);
      path.catch(() => paths.delete(filter));
      return path;
    },
  };
}

async function storeFilter(
  client: DockerClient,
  port: EnginePort,
  filter: string,
  helper: Pick<ContainerRequest, 'imageId' | 'labels'>,
): Promise<string> {
  await port.createVolume(volume, {});
  const file = { content: Buffer.from(filter), ending: '.json', mode: 0o644 };
  const [stored] = await storedFiles(port, volume, [file], helper);
  const request = { method: 'GET' as const, path: `/libpod/volumes/${volume}/json` };
  const { Mountpoint } = await client.ask<{ Mountpoint: string }>('looking at a volume', request);
  return `${Mountpoint}/${stored?.name}`;
}
