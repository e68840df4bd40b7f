import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { parseForeignJson } from '../../base/parse-json.ts';
import { archives } from '../../bounds/sandbox.ts';
import type { ContainerPort } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { type FirstIds, withContainerIds } from './first-ids.ts';

type ArchivePort = Pick<ContainerPort, 'putArchive' | 'getArchive' | 'isFolder'>;

export function dockerArchives(client: DockerClient, first: FirstIds): ArchivePort {
  const of = (id: string) => client.docker.getContainer(id);
  return {
    async putArchive(id, folder, archive, signal) {
      await client.call(
        'putting files into a container',
        (abortSignal) => of(id).putArchive(archive, { path: folder, abortSignal }),
        { signal, timeoutMs: archives.time.transfer },
      );
    },
    async getArchive(id, path, signal) {
      const archive = (await client.call(
        `reading ${path} from a container`,
        (abortSignal) => of(id).getArchive({ path, abortSignal }),
        { signal },
      )) as Readable;
      const isMapped = first.uid !== 0 || first.gid !== 0;
      return isMapped ? withContainerIds(archive, first) : archive;
    },
    isFolder: async (id, path, signal) => (await pathFacts(client, id, path, signal)).isFolder,
  };
}

/** What the engine tells about a path of a container without reading its content. One round trip. */
export async function pathFacts(
  client: DockerClient,
  id: string,
  path: string,
  signal?: AbortSignal,
): Promise<PathFacts> {
  const answer = await client.call(
    `looking for ${path} in a container`,
    (abortSignal) => client.docker.getContainer(id).infoArchive({ path, abortSignal }),
    { signal },
  );
  // Even an answer without a body holds its connection until it is read.
  (answer as unknown as IncomingMessage).resume();
  return factsIn(answer as DescribedPath);
}

/** An answer of the engine that describes the requested path in a header. */
interface DescribedPath {
  headers?: Record<string, string | undefined>;
}

/** The folder bit in Go's file modes, which the header uses. */
const goFolderBit = 2 ** 31;

interface PathFacts {
  /** A link to a folder is none. */
  isFolder: boolean;
  bytes: number;
}

/** The header's value is JSON in base64. */
function factsIn({ headers }: DescribedPath): PathFacts {
  const stat = headers?.['x-docker-container-path-stat'] ?? '';
  const { mode = 0, size = 0 } = parseForeignJson(Buffer.from(stat, 'base64').toString() || '{}') as {
    mode?: number;
    size?: number;
  };
  return { isFolder: Math.floor(mode / goFolderBit) % 2 === 1, bytes: size };
}
