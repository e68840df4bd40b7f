import type { DockerClient } from '../docker/client.ts';
import { dockerImages, type EngineHealthcheck, healthcheckOf } from '../docker/images.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { ImagePort, ImportRequest, ListedImage } from '../port/images.ts';
import { imageId, imageName } from './names.ts';
import { listedAgain } from './tried-again.ts';

/** Milliseconds: the engine answers only once, after the import. */
const importMs = 600_000;

export function podmanImages({ docker, native }: { docker: DockerClient; native: DockerClient }): ImagePort {
  const same = dockerImages(docker);
  const { clock } = docker;
  return {
    ...same,
    async find(name, signal) {
      const found = await same.find(name, signal);
      const more = found && (await nativeFacts(native, found.id, signal));
      return more && { ...found, id: imageId(found.id), ...named(found), ...more };
    },
    list: async (signal) => (await listedAgain(() => same.list(signal), { clock, signal })).map(listed),
    listNameless: async (labels, signal) =>
      (await listedAgain(() => same.listNameless(labels, signal), { clock, signal })).map(listed),
    import: (request) => importImage(native, request),
  };
}

/** What the Docker API of Podman 4 leaves out of an image; undefined if the image is gone. One round trip. */
async function nativeFacts(client: DockerClient, id: string, signal: AbortSignal | undefined) {
  const request = { method: 'GET' as const, path: `/libpod/images/${id}/json` };
  try {
    const { Healthcheck } = await client.ask<{ Healthcheck?: EngineHealthcheck }>(
      'looking for the health check of an image',
      request,
      { signal },
    );
    return { healthcheck: healthcheckOf(Healthcheck) };
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
  const request = { method: 'POST' as const, path: `/libpod/images/import?${query}`, archive: root };
  await client.upload(`importing ${name} as an image`, request, { signal, timeoutMs: importMs });
}
