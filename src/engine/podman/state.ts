import type { DockerClient } from '../docker/client.ts';
import { storageOf } from '../docker/state.ts';
import type { ContainerState } from '../port/containers.ts';
import { plainRuntimes } from '../port/plain-runtimes.ts';
import { kernelMounts } from './create.ts';

interface Inspected {
  Created: string;
  State: { Pid: number; Running: boolean; Status: string; ExitCode: number; OOMKilled?: boolean };
  OCIRuntime?: string;
  GraphDriver?: { Name: string; Data?: { UpperDir?: string } | null } | null;
  Mounts?: { Destination: string; Source?: string; RW: boolean }[] | null;
  HostnamePath?: string;
  HostsPath?: string;
  ResolvConfPath?: string;
  NetworkSettings?: { Networks?: Record<string, unknown> | null };
}

/** Podman records the end of a container a moment later, in steps: `stopping`, `stopped`, then `exited`. */
const ended = ['stopped', 'exited'];

export async function containerState(
  client: DockerClient,
  id: string,
  signal?: AbortSignal,
): Promise<ContainerState> {
  const request = { method: 'GET' as const, path: `/libpod/containers/${id}/json` };
  const inspected = await client.ask<Inspected>('looking at a container', request, { signal });
  const { State } = inspected;
  return {
    isRunning: State.Running,
    exitCode: ended.includes(State.Status) ? State.ExitCode : undefined,
    oomKilled: State.OOMKilled ?? false,
    initPid: State.Pid,
    createdAt: Date.parse(inspected.Created),
    layer: layerOf(inspected),
    storage: storageOf(inspected.GraphDriver?.Data?.UpperDir, {
      ...inspected,
      Mounts: (inspected.Mounts ?? []).filter(({ Destination }) => !kernelMounts.includes(Destination)),
    }),
    networks: Object.keys(inspected.NetworkSettings?.Networks ?? {}),
  };
}

/** Other storage drivers mark deletions in the layer in ways of their own. */
function layerOf({ GraphDriver, OCIRuntime = '', Mounts }: Inspected): string | undefined {
  const isWhole =
    GraphDriver?.Name === 'overlay' &&
    plainRuntimes.includes(OCIRuntime) &&
    !(Mounts ?? []).some(({ Destination, RW }) => RW && !kernelMounts.includes(Destination));
  return isWhole ? GraphDriver.Data?.UpperDir : undefined;
}
