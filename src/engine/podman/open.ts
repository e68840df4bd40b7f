import type { Clock } from '../../clock.ts';
import type { EngineAddress } from '../connection/address.ts';
import { openClient } from '../docker/client.ts';
import { createVolume } from '../docker/objects.ts';
import type { EnginePort, OpenEngine } from '../port/engine-port.ts';
import { type EngineFailureKind, isEngineFailure } from '../port/failure.ts';
import { podmanContainers } from './containers.ts';
import type { PodmanService } from './create.ts';
import { readPodmanFacts } from './facts.ts';
import { podmanImages } from './images.ts';
import { listObjects, removeObject } from './objects.ts';

/** The version of Podman's own API that is used. Podman 5 understands it too. */
const nativeVersion = '4.0.0';

/** Connects to a Podman service, by version `apiVersion` of its Docker API and by its own API. */
export async function openPodman(
  address: EngineAddress,
  clock: Clock,
  apiVersion: string,
): Promise<OpenEngine> {
  const docker = await openClient(address, clock, apiVersion, podmanKind);
  const native = await openClient(address, clock, nativeVersion, podmanKind);
  const clients = { docker, native };
  const service: PodmanService = { isRoot: true, runtime: '' };
  const port: EnginePort = {
    clock,
    get roundTrips() {
      return docker.roundTrips + native.roundTrips;
    },
    async facts(signal) {
      const facts = await readPodmanFacts(clients, signal);
      service.isRoot = !facts.security.rootless;
      service.runtime = facts.defaultRuntime;
      return facts;
    },
    images: podmanImages(clients),
    containers: podmanContainers(clients, () => port, service),
    list: (kind, labels, signal) => listObjects(docker, kind, labels, signal),
    async createVolume(name, labels, signal) {
      try {
        await createVolume(docker, name, labels, signal);
      } catch (thrown) {
        // If two requests make the same volume at the same time, Podman refuses one. Docker accepts both.
        if (!isEngineFailure(thrown, 'conflict')) throw thrown;
      }
    },
    remove: (kind, id, signal) => removeObject(clients, kind, id, signal),
  };
  return {
    port,
    beginEnding() {
      docker.beginEnding();
      native.beginEnding();
    },
    close() {
      docker.close();
      native.close();
    },
  };
}

/** Podman answers 500 to many requests whose object is in the wrong state, and names the cause. */
const failureKinds: readonly [cause: RegExp, kind: EngineFailureKind][] = [
  [/^(?:no such|image not known|volume not known|network not found)/, 'not-found'],
  [
    /(?:container|exec session) state improper$|is already in use$|^volume already exists$|(?:is being used|in use by)/,
    'conflict',
  ],
  [/^container has already been removed$/, 'not-found'],
  // A name that no image can have.
  [/^normalizing name .*(?:must be lowercase|invalid reference format)$/, 'not-found'],
];

/** What Podman means by a refusal; undefined if its status says so. */
function podmanKind(status: number, body: unknown): EngineFailureKind | undefined {
  const { cause } = (body ?? {}) as { cause?: unknown };
  if (status < 500 || typeof cause !== 'string') return undefined;
  return failureKinds.find(([words]) => words.test(cause))?.[1];
}
