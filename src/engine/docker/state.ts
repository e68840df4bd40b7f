import type { ContainerState, HostFacts } from '../port/containers.ts';
import { plainRuntimes } from '../port/engine-port.ts';
import { engineFailure } from '../port/failure.ts';
import type { DockerClient, Route } from './client.ts';

interface Inspected extends Placed {
  Created: string;
  State: { Pid: number; Running: boolean; Status: string; ExitCode: number; OOMKilled?: boolean };
  NetworkSettings?: { Networks?: Record<string, unknown> | null };
}

/** What says where a container is. */
export interface Placed {
  State: { Pid: number };
  GraphDriver?: { Name: string; Data?: { UpperDir?: string } | null } | null;
  HostConfig?: { Runtime?: string };
  /** Podman's name of the runtime. */
  OCIRuntime?: string;
  Mounts?: { RW: boolean; Source?: string; Destination?: string }[] | null;
  HostnamePath?: string;
  HostsPath?: string;
  ResolvConfPath?: string;
}

/** States of a container that has ended. Podman passes through `stopping` and `stopped` to `exited`. */
const ended = ['stopped', 'exited', 'dead'];

/** @param api the beginning of the path for another API than Docker's */
export async function containerState(
  client: DockerClient,
  id: string,
  signal?: AbortSignal,
  api: '' | '/libpod' = '',
): Promise<ContainerState> {
  const route = `GET ${api}/containers/${id}/json` as Route;
  const inspected = await client.ask<Inspected>('looking at a container', route, { signal });
  const createdAt = Date.parse(inspected.Created);
  if (Number.isNaN(createdAt)) {
    const message = `The engine does not say when a container was made: ${inspected.Created}`;
    throw engineFailure('refused', message, inspected);
  }
  return {
    isRunning: inspected.State.Running,
    exitCode: ended.includes(inspected.State.Status) ? inspected.State.ExitCode : undefined,
    oomKilled: inspected.State.OOMKilled ?? false,
    createdAt,
    ...hostFactsFrom(inspected),
    networks: Object.keys(inspected.NetworkSettings?.Networks ?? {}),
  };
}

/** Mounts of the kernel's own file systems, which hold no files of an image. */
const kernelMounts = ['/dev', '/dev/pts', '/dev/mqueue'];

export function hostFactsFrom(placed: Placed): HostFacts {
  const { State, GraphDriver, HostConfig, OCIRuntime = HostConfig?.Runtime ?? '' } = placed;
  const { HostnamePath, HostsPath, ResolvConfPath } = placed;
  // Read-only mounts do not matter.
  const volumes = (placed.Mounts ?? []).filter(
    ({ RW, Destination = '' }) => RW && !kernelMounts.includes(Destination),
  );
  const layer = GraphDriver?.Data?.UpperDir;
  const isWhole =
    // Other storage drivers mark deletions in ways of their own.
    ['overlay2', 'overlay'].includes(GraphDriver?.Name ?? '') &&
    // With plain runtimes, the kernel writes into the layer; others may store files elsewhere.
    plainRuntimes.includes(OCIRuntime) &&
    // The files of volumes that an image declares are not in the layer.
    volumes.length === 0;
  const stored = [layer, ...volumes.map(({ Source }) => Source), HostnamePath, HostsPath, ResolvConfPath];
  return {
    initPid: State.Pid,
    layer: isWhole ? layer : undefined,
    // Without the layer, the rest would mislead.
    storage: layer ? stored.flatMap((path) => path || []) : [],
  };
}
