import type { Clock } from '../../base/clock.ts';
import type { EngineAddress } from '../connection/docker-context.ts';
import type { EnginePort, OpenEngine } from '../port/engine-port.ts';
import { type DockerClient, openClient } from './client.ts';
import { dockerContainers } from './containers.ts';
import { readFacts } from './facts.ts';
import { type FirstIds, firstIdsOf } from './first-ids.ts';
import { dockerImages } from './images.ts';
import { dockerObjects } from './objects.ts';
import type { OwnFolder } from './own-folder.ts';

/** Connects to Docker's engine, or one like it, by an API version that both sides know. */
export async function openDocker(
  address: EngineAddress,
  clock: Clock,
  apiVersion: string,
): Promise<OpenEngine> {
  const client = openClient(address, clock, apiVersion);
  return { port: dockerPort(client), beginEnding: client.beginEnding, close: client.close };
}

export function dockerPort(client: DockerClient): EnginePort {
  const first: FirstIds = { uid: 0, gid: 0 };
  const folder: OwnFolder = { path: undefined };
  return {
    clock: client.clock,
    get roundTrips() {
      return client.roundTrips;
    },
    async facts(signal) {
      const facts = await readFacts(client, signal);
      Object.assign(first, firstIdsOf(facts));
      folder.path = facts.rootFolder;
      return facts;
    },
    images: dockerImages(client),
    containers: dockerContainers(client, first, folder),
    ...dockerObjects(client),
  };
}
