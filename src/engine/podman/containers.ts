import type { DockerClient } from '../docker/client.ts';
import { dockerContainers } from '../docker/containers.ts';
import type { ContainerEvent, ContainerPort } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { podmanArchives } from './archives.ts';
import { attachProgram } from './attach.ts';
import { createContainer, type PodmanService } from './create.ts';
import { openExec } from './exec.ts';
import { filterFiles } from './filters.ts';
import { imageId } from './names.ts';
import { listProcesses } from './processes.ts';
import { containerState } from './state.ts';

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
