import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { parseForeignJson } from '../../base/parse-json.ts';
import { tarArchive } from '../archive/write-archive.ts';
import type { DockerClient } from '../docker/client.ts';
import type { ContainerPort } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { engineFailure } from '../port/failure.ts';
import { attributesAt, withAttributes } from './attributes.ts';
import { head } from './bare-request.ts';

import { withFolderName } from './rewrite.ts';

type ArchivePort = Pick<ContainerPort, 'getArchive' | 'isFolder'>;

/** Podman follows a link at the path, and answers 404 if the link's target does not exist. */
export function podmanArchives(
  client: DockerClient,
  same: ContainerPort,
  port: () => EnginePort,
): ArchivePort {
  return {
    async getArchive(id, path, signal, { owners = false } = {}) {
      const stat = await statOf(client, id, path, signal);
      if (isLink(stat)) return { archive: linkArchive(path, stat), isFolder: false };
      // Podman gives all entries the container's own user as owner. It rounds their times, half of them up,
      // which git takes for changes.
      const known = owners ? await attributesAt(port(), id, path, signal) : undefined;
      const { archive: given } = await same.getArchive(id, path, signal);
      const folder = posix.basename(path);
      const archive = isFolder(stat) && folder !== '' ? withFolderName(given, folder) : given;
      return { archive: known ? withAttributes(archive, known) : archive, isFolder: isFolder(stat) };
    },
    isFolder: async (id, path, signal) => isFolder(await statOf(client, id, path, signal)),
  };
}

/** What the header of an answer says about a path. `mode` has the bits of Go. */
interface Stat {
  mode: number;
  linkTarget: string;
}

const goBits = { folder: 2 ** 31, link: 2 ** 27 };
const hasBit = ({ mode }: Stat, bit: number) => Math.floor(mode / bit) % 2 === 1;
const isFolder = (stat: Stat) => hasBit(stat, goBits.folder);
const isLink = (stat: Stat) => hasBit(stat, goBits.link);

async function statOf(client: DockerClient, id: string, path: string, signal: AbortSignal | undefined) {
  const query = `/containers/${id}/archive?path=${encodeURIComponent(path)}`;
  const doing = `looking for ${path} in a container`;
  const { status, headers } = await client.call(doing, (abortSignal) => head(client, query, abortSignal), {
    signal,
  });
  const stat = headers['x-docker-container-path-stat'];
  if (typeof stat === 'string') return parseForeignJson(Buffer.from(stat, 'base64').toString()) as Stat;
  const message = `The engine refused (${status}) while ${doing}`;
  throw engineFailure(status === 404 ? 'not-found' : 'refused', message, undefined);
}

/** An archive of the link alone, as other engines give it. */
function linkArchive(path: string, { linkTarget }: Stat): Readable {
  return tarArchive([{ name: posix.basename(path), linkTarget }]);
}
