import { parseForeignJson } from '../../base/parse-json.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { ContainerPort } from '../port/containers.ts';
import { engineFailure } from '../port/failure.ts';
import type { DockerClient } from './client.ts';
import { type FirstIds, withContainerIds } from './first-ids.ts';

type ArchivePort = Pick<ContainerPort, 'putArchive' | 'getArchive' | 'isFolder'>;

export function dockerArchives(client: DockerClient, first: FirstIds): ArchivePort {
  return {
    async putArchive(id, folder, body, signal) {
      const options = { body, signal, timeoutMs: archives.time.transfer };
      await client.ask('putting files into a container', `PUT ${archivePath(id, folder)}`, options);
    },
    async getArchive(id, path, signal) {
      const doing = `reading ${path} from a container`;
      const archive = await client.askForStream(doing, `GET ${archivePath(id, path)}`, { signal });
      const isMapped = first.uid !== 0 || first.gid !== 0;
      return isMapped ? withContainerIds(archive, first) : archive;
    },
    isFolder: async (id, path, signal) => isOfKind(await pathStat(client, id, path, signal), 'folder'),
  };
}

export function archivePath(id: string, path: string) {
  return `/containers/${id}/archive?path=${encodeURIComponent(path)}` as const;
}

/**
 * What the engine tells about a path of a container without reading its content. `mode` has the bits of Go.
 */
interface PathStat {
  mode: number;
  size: number;
  linkTarget: string;
}

/** Throws a `not-found`. One round trip. */
export async function pathStat(
  client: DockerClient,
  id: string,
  path: string,
  signal?: AbortSignal,
): Promise<PathStat> {
  const doing = `looking for ${path} in a container`;
  // Podman answers 404 for a link without a target too, and yet tells what the link is.
  const options = { expected: 404, signal };
  const answer = await client.askForStream(doing, `HEAD ${archivePath(id, path)}`, options);
  // Even an answer without a body holds its connection until it is read.
  answer.resume();
  const stat = answer.headers['x-docker-container-path-stat'];
  if (typeof stat === 'string') return parseForeignJson(Buffer.from(stat, 'base64').toString()) as PathStat;
  throw engineFailure('not-found', `The engine refused (404) while ${doing}`, undefined);
}

const goBits = { folder: 2 ** 31, link: 2 ** 27 };

/** A link to a folder is none. */
export function isOfKind({ mode }: PathStat, kind: keyof typeof goBits): boolean {
  return Math.floor(mode / goBits[kind]) % 2 === 1;
}
