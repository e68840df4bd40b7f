import type { DockerClient } from '../docker/client.ts';
import { dockerImages, type EngineHealthcheck, healthcheckOf } from '../docker/images.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { ImagePort, ImportRequest, ListedImage } from '../port/images.ts';
import { imageId, imageName } from './names.ts';
import { listedAgain } from './tried-again.ts';

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
  const request = { method: 'POST' as const, path: `/libpod/images/import?${query}`, body: root };
  await client.ask(`importing ${name} as an image`, request, { signal, timeoutMs: importMs });
}
