import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { archives } from '../../bounds/sandbox.ts';
import { parseForeignJson } from '../../parse-json.ts';
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
      )) as Readable & DescribedPath;
      const isMapped = first.uid !== 0 || first.gid !== 0;
      return { archive: isMapped ? withContainerIds(archive, first) : archive, isFolder: isFolder(archive) };
    },
    async isFolder(id, path, signal) {
      const answer = await client.call(
        `looking for ${path} in a container`,
        (abortSignal) => of(id).infoArchive({ path, abortSignal }),
        { signal },
      );
      // Even an answer without a body holds its connection until it is read.
      (answer as unknown as IncomingMessage).resume();
      return isFolder(answer as DescribedPath);
    },
  };
}

/** An answer of the engine that describes the requested path in a header. */
interface DescribedPath {
  headers?: Record<string, string | undefined>;
}

/** The folder bit in Go's file modes, which the header uses. */
const goFolderBit = 2 ** 31;

/** Whether the path is a folder; a link to a folder is not. The header's value is JSON in base64. */
function isFolder({ headers }: DescribedPath): boolean {
  const stat = headers?.['x-docker-container-path-stat'] ?? '';
  const { mode } = parseForeignJson(Buffer.from(stat, 'base64').toString() || '{}') as { mode?: number };
  return mode !== undefined && Math.floor(mode / goFolderBit) % 2 === 1;
}
