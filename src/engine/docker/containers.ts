import type { Readable } from 'node:stream';
import { listenTo } from '../../base/foreign-traffic.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';
import type {
  ContainerEvent,
  ContainerPort,
  FilesystemChange,
  OpenedTerminal,
  TerminalCommand,
  TerminalSize,
} from '../port/containers.ts';
import { isEngineFailure } from '../port/failure.ts';
import { dockerArchives } from './archives.ts';
import { attachProgram } from './attach.ts';
import type { DockerClient } from './client.ts';
import { createContainer } from './create.ts';
import { inspectExec, openExec, startExec } from './exec.ts';
import { engineStatus, requestFailure } from './failure.ts';
import { type FirstIds, inContainer } from './first-ids.ts';
import { textLines } from './image-streams.ts';
import { type OwnFolder, readHostFacts } from './own-folder.ts';
import { containerState } from './state.ts';
import { writtenBytesMeter } from './written-bytes.ts';

/** @param first filled in, like `folder`, before the first request about a container */
export function dockerContainers(client: DockerClient, first: FirstIds, folder: OwnFolder): ContainerPort {
  return {
    create: (request, signal) => createContainer(client, request, signal),
    async start(id, signal) {
      await client.ask('starting a container', `POST /containers/${id}/start`, { signal });
    },
    async kill(id) {
      try {
        await client.ask('killing a container', `POST /containers/${id}/kill`);
      } catch (thrown) {
        // On a conflict, the container's init has already ended.
        if (!isEngineFailure(thrown, 'conflict')) throw thrown;
      }
      await client.ask('waiting for a killed container', `POST /containers/${id}/wait`);
    },
    state: (id, signal) => containerState(client, id, signal),
    hostFacts: async (id, signal) =>
      (await readHostFacts(folder, id)) ?? (await containerState(client, id, signal)),
    async processes(id, column) {
      const query = `ps_args=${encodeURIComponent(`-eo pid,uid,stat,${column}`)}`;
      const route = `GET /containers/${id}/top?${query}` as const;
      try {
        const { Processes } = await client.ask<{ Processes: string[][] | null }>('listing processes', route);
        // Null if the container ends meanwhile.
        return (Processes ?? []).map(([pid, uid, state = '', command = '']) => ({
          pid: Number(pid),
          uid: inContainer(Number(uid), first.uid),
          state,
          command,
        }));
      } catch (thrown) {
        // If the engine's machine has no `ps`, the engine answers 500.
        if (engineStatus(thrown) === 500) return undefined;
        throw thrown;
      }
    },
    async limitProcesses(id, { pids, memoryBytes }) {
      // The engine passes the runtime 0 for a limit that is left out; runc ignores that, and crun sets it.
      const body = { PidsLimit: pids, Memory: memoryBytes, MemorySwap: memoryBytes };
      await client.ask('changing the limit on processes', `POST /containers/${id}/update`, { body });
    },
    async disconnect(id, network, signal) {
      const route = `POST /networks/${encodeURIComponent(network)}/disconnect` as const;
      const body = { Container: id, Force: true };
      await client.ask('taking a container off its network', route, { body, signal });
    },
    exec: (id, command) => openExec(client, id, command),
    terminal: (id, command) => openTerminal(client, id, command),
    attach: (id, request) => attachProgram(client, id, request),
    ...dockerArchives(client, first),
    writtenBytes: writtenBytesMeter(client),
    changes: (id) => listChanges(client, id),
    async commit(id, { repository, tag, labels }, signal) {
      const query = new URLSearchParams({ container: id, pause: 'false', repo: repository, tag });
      const options = { body: { Labels: labels }, signal };
      const doing = 'making an image of a container';
      return (await client.ask<{ Id: string }>(doing, `POST /commit?${query}`, options)).Id;
    },
    events: (id, signal) => containerEvents(client, id, signal),
  };
}

const changeKinds = ['modified', 'added', 'deleted'] as const;
const listingChanges = 'listing what a container changed';

/** Lists how the container differs from its image, while the answer arrives. */
async function* listChanges(client: DockerClient, id: string): AsyncGenerator<FilesystemChange> {
  const answer = await client.askForStream(listingChanges, `GET /containers/${id}/changes`);
  try {
    for await (const change of flatObjects(answer)) {
      const { Path, Kind } = change as { Path: string; Kind: 0 | 1 | 2 };
      yield { path: Path, kind: changeKinds[Kind] };
    }
  } catch (thrown) {
    throw requestFailure(listingChanges, thrown);
  } finally {
    answer.destroy();
  }
}

/** An object as JSON that contains no other one. */
const flatObject = /\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}/g;

/**
 * Yields the objects of a JSON array as they arrive, each parsed separately, so an array of a million is
 * never in memory as a whole. Throws an `Error` if one is too large.
 */
async function* flatObjects(source: Readable): AsyncGenerator<unknown> {
  let rest = '';
  for await (const chunk of source.setEncoding('utf8')) {
    rest += chunk;
    let end = 0;
    for (const { index, 0: object } of rest.matchAll(flatObject)) {
      end = index + object.length;
      yield JSON.parse(object);
    }
    rest = rest.slice(end);
    if (rest.length > engineAnswers.bytes.object)
      throw new Error('the engine sent an object that is too large');
  }
}

/**
 * How often the first size is sent, and milliseconds between: the engine may still be starting the command.
 */
const firstSize = { tries: 10, waitMs: 20 };

/** Starts a command on a terminal. Three round trips: engines before 23 take its size only afterwards. */
async function openTerminal(
  client: DockerClient,
  containerId: string,
  command: TerminalCommand,
): Promise<OpenedTerminal> {
  const opened = await startExec(client, containerId, command, { stdin: true, isTerminal: true });
  if (!opened.started) return opened;
  const { id, stream } = opened;
  // An error may come before anybody listens; 'close' reports it too.
  listenTo(stream, {}, () => stream.destroy());
  await sendFirstSize(client, id, command.size);
  return {
    started: true,
    terminal: {
      stream,
      async resize(to) {
        await resized(client, id, to);
      },
      inspect: () => inspectExec(client, id),
      [Symbol.dispose]: () => void stream.destroy(),
    },
  };
}

async function sendFirstSize(client: DockerClient, id: string, size: TerminalSize): Promise<void> {
  for (let attempt = 1; !(await resized(client, id, size)) && attempt < firstSize.tries; attempt++)
    await client.clock.sleep(firstSize.waitMs);
}

/** Returns whether the engine took the size. It does not while the command starts, and once it has ended. */
async function resized(client: DockerClient, id: string, { rows, columns }: TerminalSize): Promise<boolean> {
  try {
    await client.ask('resizing a terminal', `POST /exec/${id}/resize?h=${rows}&w=${columns}`);
    return true;
  } catch {
    return false;
  }
}

interface EngineEvent {
  Action: string;
  Actor?: { Attributes?: Record<string, string> };
}

const readingEvents = "reading the engine's events";

/** Events by Docker's names. It also kills a container in order to stop it. */
const eventKinds: Readonly<Record<string, ContainerEvent['kind']>> = {
  start: 'started',
  oom: 'oom',
  exec_start: 'exec-started',
  kill: 'kill-requested',
  die: 'ended',
};

/** The events of a container. The engine keeps the last few hundred of all containers. */
async function* containerEvents(
  client: DockerClient,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<ContainerEvent> {
  const filters = JSON.stringify({ container: [id], event: Object.keys(eventKinds) });
  const route = `GET /events?since=1&filters=${encodeURIComponent(filters)}` as const;
  const stream = await client.askForStream(readingEvents, route);
  const end = () => stream.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    if (signal.aborted) return;
    for await (const line of textLines(stream)) {
      if (line.trim() === '') continue;
      const { Action, Actor } = parseForeignJson(line) as EngineEvent;
      // An exec's action has its command after a colon.
      const kind = eventKinds[Action.split(':', 1)[0] ?? ''];
      if (kind === 'exec-started') yield { kind, execId: Actor?.Attributes?.execID ?? '' };
      else if (kind !== undefined) yield { kind };
    }
  } catch (thrown) {
    if (!signal.aborted) throw requestFailure(readingEvents, thrown);
  } finally {
    signal.removeEventListener('abort', end);
    stream.destroy();
  }
}
