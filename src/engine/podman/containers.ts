import type { DockerClient } from '../docker/client.ts';
import { dockerContainers } from '../docker/containers.ts';
import { storageOf } from '../docker/state.ts';
import type { ContainerEvent, ContainerPort, ContainerState } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { plainRuntimes } from '../port/plain-runtimes.ts';
import { podmanArchives } from './archives.ts';
import { attachProgram } from './attach.ts';
import { createContainer, kernelMounts, type PodmanService } from './create.ts';
import { openExec } from './exec.ts';
import { filterFiles } from './filters.ts';
import { imageId } from './names.ts';
import { listProcesses } from './processes.ts';

/** Containers by Podman's own API where its Docker API differs from Docker's. */
export function podmanContainers(
  { docker, native }: { docker: DockerClient; native: DockerClient },
  port: () => EnginePort,
  service: PodmanService,
): ContainerPort {
  const filters = filterFiles(native, port);
  // Podman reports the container's ids, so none is converted.
  const same = dockerContainers(docker, { uid: 0, gid: 0 });
  return {
    ...same,
    create: (request, signal) => createContainer(native, { filters, service }, request, signal),
    state: (id, signal) => containerState(native, id, signal),
    processes: (id, column) => listProcesses(docker, port(), id, column),
    async limitProcesses(id, { pids }) {
      const path = `/libpod/containers/${id}/update`;
      const body = { pids: { limit: pids } };
      const request = { method: 'POST' as const, path, expected: [201], body };
      await native.ask('changing the limit on processes', request);
    },
    exec: (id, command) => openExec(docker, id, command),
    attach: (id, request) => attachProgram(docker, id, request),
    ...podmanArchives(docker, same, port),
    async commit(id, { repository, tag, labels }, signal) {
      const query = new URLSearchParams({ container: id, pause: 'false', format: 'docker' });
      query.set('repo', repository);
      query.set('tag', tag);
      for (const [key, value] of Object.entries(labels)) {
        query.append('changes', `LABEL ${key}=${JSON.stringify(value)}`);
      }
      const { Id } = await native.ask<{ Id: string }>(
        'making an image of a container',
        { method: 'POST', path: `/libpod/commit?${query}`, expected: [200, 201] },
        { signal },
      );
      return imageId(Id);
    },
    events: noEvents,
  };
}

/** Podman does not report kills for lack of memory, and reports starts of commands without their ids. */
async function* noEvents(): AsyncGenerator<ContainerEvent> {
  yield* [];
}

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

async function containerState(
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
