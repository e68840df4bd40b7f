import type { EnginePort } from '../port/engine-port.ts';
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

const queries = {
  container: '/containers/json?all=true&',
  network: '/networks?',
  volume: '/volumes?',
} as const;

const routes = {
  container: (id: string) => `DELETE /containers/${id}?force=true&v=true` as const,
  image: (id: string) => `DELETE /images/${id}?noprune=true` as const,
  network: (id: string) => `DELETE /networks/${encodeURIComponent(id)}?` as const,
  volume: (id: string) => `DELETE /volumes/${encodeURIComponent(id)}?` as const,
};

/** Containers, networks and volumes, and the removal of images. */
export function dockerObjects(client: DockerClient): Pick<EnginePort, 'list' | 'createVolume' | 'remove'> {
  return {
    async list(kind, labels, signal) {
      const filters = encodeURIComponent(JSON.stringify(labels.length === 0 ? {} : { label: labels }));
      const route = `GET ${queries[kind]}filters=${filters}` as const;
      type Answer = Listed[] | { Volumes: Listed[] | null };
      const answer = await client.ask<Answer>(`listing ${kind}s`, route, { signal });
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
    },
    async createVolume(name, labels, signal) {
      const body = { Name: name, Labels: labels };
      await client.ask('making a volume', 'POST /volumes/create?', { body, signal });
    },
    async remove(kind, id, signal) {
      try {
        await client.ask(`removing a ${kind}`, routes[kind](id), { expected: 404, signal });
      } catch (thrown) {
        // The engine answers 403 for a network that has members.
        if (kind !== 'network' || engineStatus(thrown) !== 403) throw thrown;
        throw engineFailure('conflict', (thrown as Error).message, thrown);
      }
    },
  };
}
