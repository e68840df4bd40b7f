import type Docker from 'dockerode';
import { isEngineFailure } from '../port/failure.ts';
import type { Image, ImagePort, ListedImage } from '../port/images.ts';
import type { DockerClient } from './client.ts';
import { buildImage, importImage, pullImage } from './image-streams.ts';

export function dockerImages(client: DockerClient): ImagePort {
  return {
    find: (name, signal) => findImage(client, name, signal),
    list: (signal) => listImages(client, 'all=true', signal),
    listNameless(labels, signal) {
      const filters = JSON.stringify({ dangling: ['true'], label: labels });
      return listImages(client, `filters=${encodeURIComponent(filters)}`, signal);
    },
    async tag(image, name, signal) {
      const colon = name.lastIndexOf(':');
      const [repo, tag] = [name.slice(0, colon), name.slice(colon + 1)];
      await client.call(
        'naming an image',
        (abortSignal) => client.docker.getImage(image).tag({ repo, tag, abortSignal }),
        { signal },
      );
    },
    pull: (name, options) => pullImage(client, name, options),
    import: (request) => importImage(client, request),
    build: (request) => buildImage(client, request),
  };
}

async function findImage(
  client: DockerClient,
  name: string,
  signal?: AbortSignal,
): Promise<Image | undefined> {
  try {
    const found = await client.ask<Docker.ImageInspectInfo>(
      `looking for the image ${name}`,
      { method: 'GET', path: `/images/${encodeURI(name)}/json` },
      { signal },
    );
    const madeAt = Date.parse(found.Created);
    return {
      id: found.Id,
      names: found.RepoTags ?? [],
      digests: found.RepoDigests ?? [],
      arch: found.Architecture,
      platform: [found.Os, found.Architecture, found.Variant].filter(Boolean).join('/'),
      bytes: found.Size,
      madeAt,
      namedAt: Math.max(madeAt, namedAt(found)),
      labels: found.Config?.Labels ?? {},
      user: found.Config?.User ?? '',
      workingDir: found.Config?.WorkingDir ?? '',
      env: Object.fromEntries((found.Config?.Env ?? []).map(nameAndValue)),
      volumes: Object.keys(found.Config?.Volumes ?? {}),
    };
  } catch (thrown) {
    if (isEngineFailure(thrown, 'not-found')) return undefined;
    throw thrown;
  }
}

function nameAndValue(line: string): [name: string, value: string] {
  const end = line.indexOf('=');
  return end === -1 ? [line, ''] : [line.slice(0, end), line.slice(end + 1)];
}

/** Engines report the year 1 for an image without a name, or if they do not record this time. */
function namedAt(image: Docker.ImageInspectInfo): number {
  const { LastTagTime } = (image as { Metadata?: { LastTagTime?: string } }).Metadata ?? {};
  return LastTagTime === undefined ? 0 : Date.parse(LastTagTime);
}

async function listImages(
  client: DockerClient,
  query: string,
  signal: AbortSignal | undefined,
): Promise<ListedImage[]> {
  const path = `/images/json?${query}`;
  const found = await client.ask<Docker.ImageInfo[]>('listing images', { method: 'GET', path }, { signal });
  return found.map(({ Id, RepoTags, ParentId, Size, Labels, Created }) => ({
    id: Id,
    // What some engines tell of an image without a name.
    names: (RepoTags ?? []).filter((name) => name !== '<none>:<none>'),
    parentId: ParentId,
    bytes: Size,
    labels: Labels ?? {},
    createdAt: Created * 1000,
  }));
}
