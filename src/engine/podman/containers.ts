import { engineAnswers } from '../../bounds/sandbox.ts';
import { readArchive } from '../archive/read.ts';
import type { DockerClient } from '../docker/client.ts';
import { dockerContainers } from '../docker/containers.ts';
import { openExec as openAsDocker } from '../docker/exec.ts';
import { engineMessage, engineStatus } from '../docker/failure.ts';
import { containerState } from '../docker/state.ts';
import type {
  CommandColumn,
  ContainerPort,
  EngineProcess,
  ExecCommand,
  OpenedExec,
  OutputPiece,
} from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { podmanArchives } from './archives.ts';
import { createContainer, filterFiles, imageId, type PodmanService } from './create.ts';

/** Containers by Podman's own API where its Docker API differs from Docker's. */
export function podmanContainers(
  { docker, native }: { docker: DockerClient; native: DockerClient },
  port: () => EnginePort,
  service: PodmanService,
): ContainerPort {
  const filterPath = filterFiles(native, port);
  // Podman reports the container's ids, so none is converted.
  const same = dockerContainers(docker, { uid: 0, gid: 0 }, { path: undefined });
  return {
    ...same,
    create: (request, signal) => createContainer(native, { filterPath, service }, request, signal),
    state: (id, signal) => containerState(native, id, signal, '/libpod'),
    hostFacts: (id, signal) => containerState(native, id, signal, '/libpod'),
    processes: (id, column) => listProcesses(docker, port(), id, column),
    async limitProcesses(id, { pids }) {
      const body = { pids: { limit: pids } };
      await native.ask('changing the limit on processes', `POST /libpod/containers/${id}/update`, { body });
    },
    exec: (id, command) => openExec(docker, id, command),
    ...podmanArchives(docker, same, port),
    async commit(id, { repository, tag, labels }, signal) {
      const query = new URLSearchParams({ container: id, pause: 'false', format: 'docker' });
      query.set('repo', repository);
      query.set('tag', tag);
      for (const [key, value] of Object.entries(labels)) {
        query.append('changes', `LABEL ${key}=${JSON.stringify(value)}`);
      }
      const doing = 'making an image of a container';
      return imageId(
        (await native.ask<{ Id: string }>(doing, `POST /libpod/commit?${query}`, { signal })).Id,
      );
    },
    // Podman does not report kills for lack of memory, and reports starts of commands without their ids.
    events: undefined,
  };
}

/**
 * Podman reads `/proc` itself for these columns. For any other it would run the container's own `ps`, which
 * an agent may have replaced.
 */
async function listProcesses(
  client: DockerClient,
  port: EnginePort,
  id: string,
  column: CommandColumn,
): Promise<EngineProcess[] | undefined> {
  const route = `GET /containers/${id}/top?ps_args=hpid,user,state,${column}&` as const;
  const answer = await client.ask<{ Processes?: string[][] }>('listing processes', route);
  // If Podman fails after it has sent the headers, there is no list.
  if (answer.Processes === undefined) return undefined;
  const users = answer.Processes.map(([, user = '']) => user);
  const ids = users.every(isNumber) ? new Map<string, number>() : await userIds(port, id);
  return answer.Processes.map(([pid, user = '', state = '', command = '']) => ({
    pid: Number(pid),
    uid: isNumber(user) ? Number(user) : (ids.get(user) ?? Number.NaN),
    state,
    command,
  }));
}

function isNumber(user: string): boolean {
  return /^\d+$/.test(user);
}

/**
 * Podman names users as the container's `/etc/passwd` does. If an agent has falsified that file, its
 * processes survive the kill by user, and a restart ends them.
 */
async function userIds(port: EnginePort, id: string): Promise<Map<string, number>> {
  const ids = new Map([['root', 0]]);
  for await (const entry of readArchive({ port, id }, '/etc/passwd', undefined, engineAnswers.bytes.users)) {
    for (const line of Buffer.concat(await Array.fromAsync(entry.content()))
      .toString()
      .split('\n')) {
      const [name = '', , uid = ''] = line.split(':');
      if (!ids.has(name) && /^\d+$/.test(uid)) ids.set(name, Number(uid));
    }
  }
  return ids;
}

/** What Podman answers if the container has no such user. */
const noUser = /unable to find (?:user|group) /;

/**
 * Runs a command, reads the input that the command does not read, and ends after both. If a command ends
 * while some of its input is on the way, Podman's connection to it is reset: the end of the output is lost,
 * and Podman's error is in its place. A missing program ends with 127, as in a shell. The shell says nothing
 * of its own, and neither it nor its `cat` ends by a signal to the command's process group, other than KILL.
 * `command -p` takes no program of the workspace.
 */
const readInput = [
  '/bin/sh',
  '-c',
  `exec 3>&2 2> /dev/null
trap : HUP INT QUIT USR1 USR2 ALRM TERM
{ trap '' HUP INT QUIT USR1 USR2 ALRM TERM; command -p cat; command -p cat > /dev/null; } | "$@" 2>&3 3>&-`,
  'sh',
];

/** A stream may stay open until the command has ended. */
function argvOf({ argv, stdin, readsInput }: ExecCommand): readonly string[] {
  const isWhole = typeof stdin === 'string' || Buffer.isBuffer(stdin);
  return isWhole && !readsInput ? [...readInput, ...argv] : argv;
}

/**
 * Starts a command. If Podman cannot start a command, it reports the reason in the command's standard error.
 * It drops the id of a process that has ended, so nothing else distinguishes such a command from one that
 * ran.
 */
async function openExec(
  client: DockerClient,
  containerId: string,
  command: ExecCommand,
): Promise<OpenedExec> {
  // What it printed first to its standard error, if it printed nothing to its standard output.
  let beginning: string | undefined = '';
  const onPiece = (piece: OutputPiece) => {
    const { stream, bytes } = piece;
    if (stream === 'stdout') beginning = undefined;
    else if (beginning !== undefined && beginning.length < kept)
      beginning += bytes.toString('latin1', 0, kept);
    command.onPiece(piece);
  };
  try {
    const opened = await openAsDocker(client, containerId, { ...command, argv: argvOf(command), onPiece });
    if (!opened.started) return opened;
    const { exec } = opened;
    const inspect = async () => {
      const state = await exec.inspect();
      const isFailure = [125, 126, 127].includes(state.exitCode ?? 0) && failure.test(beginning ?? '');
      return { ...state, neverStarted: !state.running && isFailure };
    };
    return { started: true, exec: { ...exec, inspect } };
  } catch (thrown) {
    const message = engineMessage(thrown);
    if (engineStatus(thrown) !== 500 || !noUser.test(message)) throw thrown;
    return { started: false, message };
  }
}

/** Characters of what a command printed first. */
const kept = 4096;

/** `Error: ` and what the runtime said, then one of Podman's causes. */
const failure =
  /^Error: .*: (?:OCI runtime attempted to invoke a command that was not found|OCI permission denied|OCI runtime error)\n/;
