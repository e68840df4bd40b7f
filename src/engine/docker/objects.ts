import type { ListedObject, ObjectKind } from '../port/engine-port.ts';
import { engineFailure } from '../port/failure.ts';
import type { DockerClient } from './client.ts';
import { engineStatus } from './failure.ts';

/** The fields of containers, networks and volumes in the engine's lists; each kind has some of them. */
interface Listed {
  Id?: string;
  /** Podman gives a container an empty one. */
  Name?: string;
  /** A container's; each begins with a slash. */
  Names?: string[];
  Labels: Record<string, string> | null;
  State?: string;
  ImageID?: string;
  /** A container's in seconds, a network's as ISO 8601. */
  Created?: number | string;
  CreatedAt?: string;
}

const queries = { container: '/containers/json?all=true&', network: '/networks?', volume: '/volumes?' };

export async function listObjects(
  client: DockerClient,
  kind: ObjectKind,
  labels: readonly string[],
  signal?: AbortSignal,
): Promise<ListedObject[]> {
  const filters = encodeURIComponent(JSON.stringify(labels.length === 0 ? {} : { label: labels }));
  const answer = await client.ask<Listed[] | { Volumes: Listed[] | null }>(
    `listing ${kind}s`,
    { method: 'GET', path: `${queries[kind]}filters=${filters}` },
    { signal },
  );
  const listed = Array.isArray(answer) ? answer : (answer.Volumes ?? []);
  return listed.map((object) => {
    const name = object.Names?.[0]?.replace(/^\//, '') ?? object.Name ?? '';
    const created = object.Created ?? object.CreatedAt ?? '';
    return {
      kind,
      id: object.Id ?? name,
      name,
      labels: object.Labels ?? {},
      createdAt: typeof created === 'number' ? created * 1000 : Date.parse(created),
      ...(object.State !== undefined && { state: object.State }),
      ...(object.ImageID !== undefined && { imageId: object.ImageID }),
    };
  });
}

export async function createVolume(
  client: DockerClient,
  name: string,
  labels: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<void> {
  const body = { Name: name, Labels: labels };
  const request = { method: 'POST' as const, path: '/volumes/create?', body };
  await client.ask('making a volume', request, { signal });
}

const paths = {
  container: (id: string) => `/containers/${id}?force=true&v=true`,
  image: (id: string) => `/images/${id}?noprune=true`,
  network: (id: string) => `/networks/${encodeURIComponent(id)}?`,
  volume: (id: string) => `/volumes/${encodeURIComponent(id)}?`,
};

export async function removeObject(
  client: DockerClient,
  kind: ObjectKind | 'image',
  id: string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    const request = { method: 'DELETE' as const, path: paths[kind](id), expected: 404 };
    await client.ask(`removing a ${kind}`, request, { signal });
  } catch (thrown) {
    // The engine answers 403 for a network that has members.
    if (kind !== 'network' || engineStatus(thrown) !== 403) throw thrown;
    throw engineFailure('conflict', (thrown as Error).message, thrown);
  }
}
