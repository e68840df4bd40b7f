import { posix } from 'node:path';
import { longestPathList, tooManyPaths } from '../../base/path-room.ts';
import { pathLists } from '../../bounds/sandbox.ts';
import type { TarHeader } from '../archive/tar-entries.ts';
import { rewritten, tarArchive } from '../archive/write-archive.ts';
import { isOfKind, pathStat } from '../docker/archives.ts';
import type { DockerClient } from '../docker/client.ts';
import { dockerImages, type EngineHealthcheck, healthcheckOf } from '../docker/images.ts';
import { readPrinted } from '../exec/run-quietly.ts';
import type { ContainerPort } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { containerDamaged, isEngineFailure } from '../port/failure.ts';
import type { ImagePort, ImportRequest, ListedImage } from '../port/images.ts';
import { imageId, imageName } from './create.ts';
import { listedAgain } from './tried-again.ts';

/** Podman follows a link at the path, and answers 404 if the link's target does not exist. */
export function podmanArchives(
  client: DockerClient,
  same: ContainerPort,
  port: () => EnginePort,
): Pick<ContainerPort, 'getArchive'> {
  return {
    async getArchive(id, path, signal, { owners = false } = {}) {
      const stat = await pathStat(client, id, path, signal);
      // An archive of the link alone, as other engines give it.
      if (isOfKind(stat, 'link'))
        return tarArchive([{ path: posix.basename(path), linkTarget: stat.linkTarget }]);
      // Podman gives all entries the container's own user as owner. It rounds their times, half of them up,
      // which git takes for changes.
      const known = owners ? await attributesAt(port(), id, path, signal) : undefined;
      const archive = await same.getArchive(id, path, signal);
      return rewritten(archive, withNames(posix.basename(path), known));
    },
  };
}

type Attributes = Pick<TarHeader, 'uid' | 'gid' | 'modifiedAt'>;

/** By path relative to the archived path, as bytes in latin1; '' is the archived path itself. */
type AttributesByPath = ReadonlyMap<string, Attributes>;

/** The most users that the list is requested as. */
const mostUsers = 4;

/**
 * Prints every path below `$1`, then in the same order its owner and its time. Works with the `stat` of GNU
 * and of busybox.
 */
const list = `find "$1" -print0; first=$?; printf '\\0'
find "$1" -exec stat -c '%u:%g:%Y' {} + || exit
exit $first`;

/**
 * Asks a running container for the owners and times of all that is at a path. Programs of the container list
 * them: an attacker who could replace these programs could also change the owners and times. Paths that none
 * of its users may read are missing. Three round trips, and three more for each user that hides something
 * from root.
 */
async function attributesAt(
  port: EnginePort,
  id: string,
  path: string,
  signal: AbortSignal | undefined,
): Promise<AttributesByPath> {
  const known = new Map<string, Attributes>();
  // Root without capabilities may not see what another user hides, but that user may.
  const users = ['0:0'];
  for (let next = 0; next < Math.min(users.length, mostUsers); next++) {
    const { bytes, inspect } = await readPrinted(port, id, {
      argv: ['/bin/sh', '-c', list, 'offsite', path],
      env: { LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      user: users[next],
      signal,
      maxBytes: longestPathList(),
      flooded: tooManyPaths,
      late: () => containerDamaged('The owners and times of files were not listed in time.'),
      timeoutMs: pathLists.time.listing,
    });
    readAttributes(bytes, path, known);
    if ((await inspect()).exitCode === 0) break;
    for (const { uid, gid } of known.values()) {
      if (users.length === mostUsers) break;
      if (!users.includes(`${uid}:${gid}`)) users.push(`${uid}:${gid}`);
    }
  }
  return known;
}

function readAttributes(bytes: Buffer, path: string, known: Map<string, Attributes>): void {
  const end = bytes.indexOf('\0\0');
  if (end === -1) return;
  const paths = bytes.toString('latin1', 0, end).split('\0');
  const lines = bytes.toString('latin1', end + 2).split('\n');
  // Something was created or deleted between the two lists.
  if (lines.length - 1 !== paths.length) return;
  const root = Buffer.from(path).toString('latin1');
  paths.forEach((full, index) => {
    const [uid = Number.NaN, gid = Number.NaN, seconds = Number.NaN] = (lines[index] ?? '')
      .split(':')
      .map(Number);
    if (!(uid >= 0 && gid >= 0 && Number.isInteger(seconds))) return;
    known.set(full.slice(root.length).replace(/^\/+/, ''), { uid, gid, modifiedAt: seconds * 1000 });
  });
}

/**
 * Gives an entry its owner and times; one that is not in `known` keeps those that the engine gave. Podman
 * leaves the folder's name out before every path of a volume in a container that does not run.
 */
function withNames(folder: string, known: AttributesByPath | undefined) {
  const under = (path: Buffer) =>
    path[0] === slash && folder !== '' ? Buffer.concat([Buffer.from(folder), path]) : path;
  return (header: TarHeader): TarHeader => {
    const name = under(header.name);
    const parts = name.toString('latin1').split('/').filter(Boolean);
    const linkName = header.flag === '1' ? under(header.linkName) : header.linkName;
    return { ...header, name, linkName, ...known?.get(parts.slice(1).join('/')) };
  };
}

const slash = 0x2f;

/** Milliseconds: the engine answers only once, after the import. */
const importMs = 600_000;

/** The most attempts to read an image that disappears between two requests. */
const looks = 3;

export function podmanImages({ docker, native }: { docker: DockerClient; native: DockerClient }): ImagePort {
  const same = dockerImages(docker);
  const { clock } = docker;
  return {
    ...same,
    async find(name, signal) {
      for (let look = 1; look <= looks; look++) {
        const found = await same.find(name, signal);
        if (found === undefined) return undefined;
        const more = await nativeFacts(native, found.id, signal);
        if (more) return { ...found, id: imageId(found.id), ...named(found), ...more };
        // Another image may have got the name meanwhile.
      }
      return undefined;
    },
    list: async (signal) => (await listedAgain(() => same.list(signal), { clock, signal })).map(listed),
    async listNameless(labels, signal) {
      // With several labels, Podman 4 finds no images, even if some have them all.
      const first = labels.slice(0, 1);
      const found = await listedAgain(() => same.listNameless(first, signal), { clock, signal });
      return found.filter((image) => labels.every((label) => hasLabel(image, label))).map(listed);
    },
    import: (request) => importImage(native, request),
  };
}

/** `label` is `key=value`, or `key` with any value. */
function hasLabel({ labels }: ListedImage, label: string): boolean {
  const [key = '', ...value] = label.split('=');
  return value.length === 0 ? key in labels : labels[key] === value.join('=');
}

/** What the Docker API of Podman 4 leaves out of an image; undefined if the image is gone. One round trip. */
async function nativeFacts(client: DockerClient, id: string, signal: AbortSignal | undefined) {
  const doing = 'looking for the health check of an image';
  const route = `GET /libpod/images/${id}/json` as const;
  try {
    const facts = await client.ask<{ Healthcheck?: EngineHealthcheck }>(doing, route, { signal });
    return { healthcheck: healthcheckOf(facts.Healthcheck) };
  } catch (thrown) {
    if (isEngineFailure(thrown, 'not-found')) return undefined;
    throw thrown;
  }
}

function listed(image: ListedImage): ListedImage {
  const { id, parentId, names } = image;
  return { ...image, id: imageId(id), parentId: imageId(parentId), names: names.map(imageName) };
}

function named({ names, digests }: { names: string[]; digests: string[] }) {
  return { names: names.map(imageName), digests: digests.map(imageName) };
}

/** The Docker API of Podman 4 drops the tag of an imported image. */
async function importImage(
  client: DockerClient,
  { root, name, env, command, labels, signal }: ImportRequest,
): Promise<void> {
  const query = new URLSearchParams({ reference: name });
  const changes = [
    ...Object.entries(env).map(([key, value]) => `ENV ${key}=${JSON.stringify(value)}`),
    `CMD ${JSON.stringify(command)}`,
    ...Object.entries(labels).map(([key, value]) => `LABEL ${key}=${JSON.stringify(value)}`),
  ];
  for (const change of changes) query.append('changes', change);
  const options = { body: root, signal, timeoutMs: importMs };
  await client.ask(`importing ${name} as an image`, `POST /libpod/images/import?${query}`, options);
}
