import type { Clock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { EngineAddress } from '../connection/docker-context.ts';
import { type DockerClient, openClient } from '../docker/client.ts';
import { readFacts } from '../docker/facts.ts';
import { dockerObjects } from '../docker/objects.ts';
import type { Capabilities, EnginePort, OpenEngine } from '../port/engine-port.ts';
import { type EngineFailureKind, isEngineFailure } from '../port/failure.ts';
import { podmanImages } from './archives.ts';
import { podmanContainers } from './containers.ts';
import { imageId, machineName, type PodmanService } from './create.ts';
import { listedAgain } from './tried-again.ts';

/** The version of Podman's own API that is used. Podman 5 understands it too. */
const nativeVersion = '4.0.0';

/** Connects to a Podman service, by version `apiVersion` of its Docker API and by its own API. */
export async function openPodman(
  address: EngineAddress,
  clock: Clock,
  apiVersion: string,
): Promise<OpenEngine> {
  const docker = openClient(address, clock, apiVersion, podmanKind);
  const native = openClient(address, clock, nativeVersion, podmanKind);
  const clients = { docker, native };
  const same = dockerObjects(docker);
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
    async list(kind, labels, signal) {
      const listed = await listedAgain(() => same.list(kind, labels, signal), { clock, signal });
      return listed.map((object) => ({
        ...object,
        // `stopped`: the program has ended, and Podman has not cleaned up yet.
        ...(object.state === 'stopped' && { state: 'exited' }),
        ...(object.imageId !== undefined && { imageId: imageId(object.imageId) }),
      }));
    },
    async createVolume(name, labels, signal) {
      try {
        await same.createVolume(name, labels, signal);
      } catch (thrown) {
        // If two requests make the same volume at the same time, Podman refuses one. Docker accepts both.
        if (!isEngineFailure(thrown, 'conflict')) throw thrown;
      }
    },
    remove: (kind, id, signal) =>
      kind === 'container' ? removeContainer(native, id, signal) : same.remove(kind, id, signal),
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

interface Info {
  host: { cgroupControllers?: string[] | null; security?: { rootless?: boolean } };
}

/** Two round trips: Podman's Docker API reports the limits of the machine, even if containers get none. */
export async function readPodmanFacts(
  { docker, native }: { docker: DockerClient; native: DockerClient },
  signal?: AbortSignal,
): Promise<Capabilities> {
  const [facts, { host }] = await Promise.all([
    readFacts(docker, signal),
    native.ask<Info>('asking the engine what it can do', 'GET /libpod/info', { signal }),
  ]);
  const rootless = host.security?.rootless ?? false;
  const controllers = host.cgroupControllers ?? [];
  // Without root, version 1 of control groups gives no limits.
  const limits = rootless && facts.cgroupVersion === '1' ? [] : controllers;
  return {
    ...facts,
    product: 'Podman',
    // Podman lists the runtimes that its configuration names, even missing ones, and runs all containers with
    // one of them.
    runtimes: [facts.defaultRuntime],
    arch: machineName(facts.arch),
    security: { ...facts.security, rootless },
    limits: {
      memory: limits.includes('memory'),
      // For swap, Podman only looks for the kernel's file of version 1. In version 2 the memory controller
      // limits swap too.
      swap: limits.includes('memory') && (facts.cgroupVersion === '2' || facts.limits.swap),
      pids: limits.includes('pids'),
      cpu: limits.includes('cpu'),
    },
  };
}

/**
 * Without a timeout of zero, Podman waits for a container's program to end by itself. It refuses to remove a
 * container whose network or processes others share; these are removed first. That is safe: no container of
 * Offsite's outlives one whose network or processes it shares.
 *
 * With `depend=true` Podman would remove the others too. It then locks a container before its dependents;
 * every other request locks them the other way round. If such a request comes at the same moment, the whole
 * service hangs until it is killed (seen with Podman 5.4).
 */
async function removeContainer(native: DockerClient, id: string, signal?: AbortSignal): Promise<void> {
  const query = 'force=true&volumes=true&timeout=0&ignore=true&';
  const options = { expected: 404, signal };
  for (let round = 1; ; round += 1) {
    try {
      await native.ask('removing a container', `DELETE /libpod/containers/${id}?${query}`, options);
      return;
    } catch (thrown) {
      if (isEngineFailure(thrown, 'not-found')) return;
      const dependents = dependentsIn(thrown);
      if (dependents.length === 0 || round === rounds) throw thrown;
      await Promise.all(dependents.map((each) => removeContainer(native, each, signal)));
    }
  }
}

/** More containers may begin to share a container's network while the first ones are removed. */
const rounds = 5;

/** The ids of containers because of which Podman refuses to remove one. */
function dependentsIn(thrown: unknown): string[] {
  if (!(thrown instanceof OffsiteError)) return [];
  const [, list = ''] =
    /dependent containers which must be removed before it: (.*)/.exec(thrown.message) ?? [];
  return list.match(/[0-9a-f]{64}/g) ?? [];
}
