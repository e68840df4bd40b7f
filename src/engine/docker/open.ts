import type { Clock } from '../../clock.ts';
import type { EngineAddress } from '../connection/address.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { type DockerClient, openClient } from './client.ts';
import { dockerContainers } from './containers.ts';
import { readFacts } from './facts.ts';
import { dockerImages } from './images.ts';
import { negotiateVersion } from './negotiate.ts';
import { createVolume, listObjects, removeObject } from './objects.ts';

export interface OpenEngine {
  port: EnginePort;
  /** Closes idle connections. */
  close(): void;
}

/** Connects to the engine at an address. Throws a `connection` failure, or `ENGINE_TOO_OLD`. */
export async function openDocker(
  address: EngineAddress,
  clock: Clock,
  signal?: AbortSignal,
): Promise<OpenEngine> {
  const apiVersion = await negotiated(address, clock, signal);
  const client = await openClient(address, clock, apiVersion);
  return { port: dockerPort(client), close: client.close };
}

export function dockerPort(client: DockerClient): EnginePort {
  return {
    clock: client.clock,
    get roundTrips() {
      return client.roundTrips;
    },
    facts: (signal) => readFacts(client, signal),
    images: dockerImages(client),
    containers: dockerContainers(client),
    list: (kind, labels, signal) => listObjects(client, kind, labels, signal),
    createVolume: (name, labels, signal) => createVolume(client, name, labels, signal),
    remove: (kind, id, signal) => removeObject(client, kind, id, signal),
  };
}

async function negotiated(
  address: EngineAddress,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<string> {
  const client = await openClient(address, clock);
  try {
    return await negotiateVersion(client, signal);
  } finally {
    client.close();
  }
}
