import type { ContainerState, HostFacts } from '../port/containers.ts';
import { plainRuntimes } from '../port/engine-port.ts';
import { engineFailure } from '../port/failure.ts';
import type { DockerClient } from './client.ts';

interface Inspected extends Placed {
  Created: string;
  State: { Pid: number; Running: boolean; Status: string; ExitCode: number; OOMKilled?: boolean };
  NetworkSettings?: { Networks?: Record<string, unknown> | null };
}

/** What says where a container is. */
interface Placed extends MountedFiles {
  State: { Pid: number };
  GraphDriver?: { Name: string; Data?: { UpperDir?: string } | null } | null;
  HostConfig?: { Runtime?: string };
  Mounts?: { RW: boolean; Source?: string }[] | null;
}

export async function containerState(
  client: DockerClient,
  id: string,
  signal?: AbortSignal,
): Promise<ContainerState> {
  const request = { method: 'GET' as const, path: `/containers/${id}/json?` };
  const inspected = await client.ask<Inspected>('looking at a container', request, { signal });
  const createdAt = Date.parse(inspected.Created);
  if (Number.isNaN(createdAt)) {
    const message = `The engine does not say when a container was made: ${inspected.Created}`;
    throw engineFailure('refused', message, inspected);
  }
  return {
    isRunning: inspected.State.Running,
    exitCode: ['exited', 'dead'].includes(inspected.State.Status) ? inspected.State.ExitCode : undefined,
    oomKilled: inspected.State.OOMKilled ?? false,
    createdAt,
    ...hostFactsFrom(inspected),
    networks: Object.keys(inspected.NetworkSettings?.Networks ?? {}),
  };
}

export function hostFactsFrom(placed: Placed): HostFacts {
  return {
    initPid: placed.State.Pid,
    layer: layerOf(placed),
    storage: storageOf(placed.GraphDriver?.Data?.UpperDir, placed),
  };
}

export interface MountedFiles {
  HostnamePath?: string;
  HostsPath?: string;
  ResolvConfPath?: string;
}

/** @param layer the folder of the container's own layer; without it, the rest would mislead */
export function storageOf(
  layer: string | undefined,
  {
    HostnamePath,
    HostsPath,
    ResolvConfPath,
    Mounts,
  }: MountedFiles & { Mounts?: { RW: boolean; Source?: string }[] | null },
): string[] {
  if (!layer) return [];
  const volumes = (Mounts ?? []).flatMap(({ RW, Source }) => (RW && Source ? [Source] : []));
  return [
    layer,
    ...volumes,
    ...[HostnamePath, HostsPath, ResolvConfPath].filter((path) => !!path),
  ] as string[];
}

function layerOf({ GraphDriver, HostConfig, Mounts }: Placed): string | undefined {
  const isWhole =
    GraphDriver?.Name === 'overlay2' &&
    // With plain runtimes, the kernel writes into the layer; others may store files elsewhere.
    plainRuntimes.includes(HostConfig?.Runtime ?? '') &&
    // The files of volumes that an image declares are not in the layer. Read-only mounts do not matter.
    !(Mounts ?? []).some(({ RW }) => RW);
  return isWhole ? GraphDriver.Data?.UpperDir : undefined;
}
