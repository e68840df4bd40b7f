import type { ContainerPort, EngineProcess } from '../port/containers.ts';
import { isEngineFailure } from '../port/failure.ts';
import { dockerArchives } from './archives.ts';
import { attachProgram } from './attach.ts';
import { listChanges } from './changes.ts';
import type { DockerClient } from './client.ts';
import { createContainer } from './create.ts';
import { containerEvents } from './events.ts';
import { openExec } from './exec.ts';
import { engineStatus } from './failure.ts';
import { type FirstIds, inContainer } from './first-ids.ts';
import { containerState } from './state.ts';
import { openTerminal } from './terminal.ts';
import { writtenBytesMeter } from './written-bytes.ts';

/** @param first filled in before the first request about a container */
export function dockerContainers(client: DockerClient, first: FirstIds): ContainerPort {
  return {
    create: (request, signal) => createContainer(client, request, signal),
    async start(id, signal) {
      const start = (abortSignal: AbortSignal) => client.docker.getContainer(id).start({ abortSignal });
      await client.call('starting a container', start, { signal });
    },
    kill: (id) => killContainer(client, id),
    state: (id, signal) => containerState(client, id, signal),
    processes: (id, column) => listProcesses(client, id, column, first),
    async limitProcesses(id, { pids, memoryBytes }) {
      const path = `/containers/${id}/update?`;
      // The engine passes the runtime 0 for a limit that is left out; runc ignores that, and crun sets it.
      const body = { PidsLimit: pids, Memory: memoryBytes, MemorySwap: memoryBytes };
      await client.ask('changing the limit on processes', { method: 'POST', path, body });
    },
    async disconnect(id, network, signal) {
      const path = `/networks/${encodeURIComponent(network)}/disconnect?`;
      await client.ask(
        'taking a container off its network',
        { method: 'POST', path, expected: [200, 204], body: { Container: id, Force: true } },
        { signal },
      );
    },
    exec: (id, command) => openExec(client, id, command),
    terminal: (id, command) => openTerminal(client, id, command),
    attach: (id, request) => attachProgram(client, id, request),
    ...dockerArchives(client, first),
    writtenBytes: writtenBytesMeter(client),
    changes: (id) => listChanges(client, id),
    async commit(id, { repository, tag, labels }, signal) {
      const query = new URLSearchParams({ container: id, pause: 'false', repo: repository, tag });
      const path = `/commit?${query}`;
      const { Id } = await client.ask<{ Id: string }>(
        'making an image of a container',
        { method: 'POST', path, expected: [200, 201], body: { Labels: labels } },
        { signal },
      );
      return Id;
    },
    events: (id, signal) => containerEvents(client, id, signal),
  };
}

async function killContainer(client: DockerClient, id: string): Promise<void> {
  const container = client.docker.getContainer(id);
  try {
    await client.call('killing a container', (abortSignal) => container.kill({ abortSignal }));
  } catch (thrown) {
    // On a conflict, the container's init has already ended.
    if (!isEngineFailure(thrown, 'conflict')) throw thrown;
  }
  await client.call('waiting for a killed container', (abortSignal) => container.wait({ abortSignal }));
}

/** If the engine's machine has no `ps`, the engine answers 500. */
async function listProcesses(
  client: DockerClient,
  id: string,
  column: string,
  first: FirstIds,
): Promise<EngineProcess[] | undefined> {
  try {
    const answer = await client.call('listing processes', (abortSignal) =>
      client.docker.getContainer(id).top({ ps_args: `-eo pid,uid,stat,${column}`, abortSignal }),
    );
    // Null if the container ends meanwhile.
    return ((answer.Processes as string[][] | null) ?? []).map(([pid, uid, state = '', command = '']) => ({
      pid: Number(pid),
      uid: inContainer(Number(uid), first.uid),
      state,
      command,
    }));
  } catch (thrown) {
    if (engineStatus(thrown) === 500) return undefined;
    throw thrown;
  }
}
