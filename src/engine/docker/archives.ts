import type { IncomingMessage } from 'node:http';
import { parseForeignJson } from '../../base/parse-json.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { ContainerPort } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { type FirstIds, withContainerIds } from './first-ids.ts';

type ArchivePort = Pick<ContainerPort, 'putArchive' | 'getArchive' | 'isFolder'>;

export function dockerArchives(client: DockerClient, first: FirstIds): ArchivePort {
  return {
    async putArchive(id, folder, body, signal) {
      const path = archivePath(id, folder);
      const limits = { signal, timeoutMs: archives.time.transfer };
      await client.ask('putting files into a container', { method: 'PUT', path, body }, limits);
    },
    async getArchive(id, path, signal) {
      const request = { method: 'GET' as const, path: archivePath(id, path) };
      const archive = await client.askForStream(`reading ${path} from a container`, request, { signal });
      const isMapped = first.uid !== 0 || first.gid !== 0;
      return isMapped ? withContainerIds(archive, first) : archive;
    },
    isFolder: async (id, path, signal) => (await pathFacts(client, id, path, signal)).isFolder,
  };
}

export function archivePath(id: string, path: string): string {
  return `/containers/${id}/archive?path=${encodeURIComponent(path)}`;
}

/** What the engine tells about a path of a container without reading its content. One round trip. */
export async function pathFacts(
  client: DockerClient,
  id: string,
  path: string,
  signal?: AbortSignal,
): Promise<PathFacts> {
  const request = { method: 'HEAD' as const, path: archivePath(id, path) };
  const answer = await client.askForStream(`looking for ${path} in a container`, request, { signal });
  // Even an answer without a body holds its connection until it is read.
  answer.resume();
  return factsIn(answer);
}

/** The folder bit in Go's file modes, which the header uses. */
const goFolderBit = 2 ** 31;

interface PathFacts {
  /** A link to a folder is none. */
  isFolder: boolean;
  bytes: number;
}

/** The header's value is JSON in base64. */
function factsIn({ headers }: IncomingMessage): PathFacts {
  const stat = String(headers['x-docker-container-path-stat'] ?? '');
  const { mode = 0, size = 0 } = parseForeignJson(Buffer.from(stat, 'base64').toString() || '{}') as {
    mode?: number;
    size?: number;
  };
  return { isFolder: Math.floor(mode / goFolderBit) % 2 === 1, bytes: size };
}
