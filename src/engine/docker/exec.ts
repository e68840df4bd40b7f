import type { Duplex } from 'node:stream';
import { listenTo } from '../../base/foreign-traffic.ts';
import type { ExecCommand, ExecState, OpenExec, OpenedExec } from '../port/containers.ts';
import { execLost } from '../port/failure.ts';
import type { DockerClient } from './client.ts';
import { engineMessage, engineStatus } from './failure.ts';
import { FrameReader } from './frame-reader.ts';

/** Starts a command, attached to its streams. */
export async function openExec(
  client: DockerClient,
  containerId: string,
  command: ExecCommand,
): Promise<OpenedExec> {
  const opened = await startExec(client, containerId, command, { stdin: command.stdin !== undefined });
  if (!opened.started) return opened;
  return { started: true, exec: attachedExec(client, opened.id, opened.stream, command) };
}

type Started = { started: true; id: string; stream: Duplex } | { started: false; message: string };

/**
 * Starts a command by connection hijacking. Two round trips. If the engine answers that it cannot run this,
 * the result is `started: false`; older engines report that as output. Before the start, engine 25 and later
 * answer 400 if the program is missing, and engine 28 and later also if the user is missing. 404 and 409
 * concern the container instead.
 */
export async function startExec(
  client: DockerClient,
  containerId: string,
  { argv, env = {}, cwd, user, signal }: Pick<ExecCommand, 'argv' | 'env' | 'cwd' | 'user' | 'signal'>,
  { stdin, isTerminal = false }: { stdin: boolean; isTerminal?: boolean },
): Promise<Started> {
  const prepared = {
    Cmd: argv,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    AttachStdin: stdin,
    AttachStdout: true,
    AttachStderr: true,
    Tty: isTerminal,
    WorkingDir: cwd,
    User: user,
  };
  try {
    const route = `POST /containers/${containerId}/exec` as const;
    const { Id: id } = await client.ask<{ Id: string }>('preparing a command', route, {
      body: prepared,
      signal,
    });
    const body = { Detach: false, Tty: isTerminal };
    const stream = await client.hijack('starting a command', `POST /exec/${id}/start`, { body, signal });
    return { started: true, id, stream };
  } catch (thrown) {
    if (engineStatus(thrown) !== 400) throw thrown;
    return { started: false, message: engineMessage(thrown) };
  }
}

/** If older engines cannot start a command, they report the reason as its output, and it has no process. */
export async function inspectExec(client: DockerClient, id: string): Promise<ExecState> {
  const state = await client.ask<{ Running: boolean; ExitCode: number | null; Pid: number }>(
    'asking how a command ended',
    `GET /exec/${id}/json`,
  );
  return { running: state.Running, exitCode: state.ExitCode, neverStarted: state.Pid === 0 };
}

function attachedExec(client: DockerClient, id: string, socket: Duplex, command: ExecCommand): OpenExec {
  const streamEnded = pump(socket, command);
  // A caller that races this promise against a deadline may never await it again.
  streamEnded.catch(() => undefined);
  const { stdin } = command;
  if (typeof stdin === 'string' || Buffer.isBuffer(stdin)) socket.end(stdin);
  else stdin?.pipe(socket);
  return {
    id,
    streamEnded,
    inspect: () => inspectExec(client, id),
    [Symbol.dispose]() {
      if (stdin !== undefined && typeof stdin !== 'string' && !Buffer.isBuffer(stdin)) stdin.destroy();
      socket.destroy();
    },
  };
}

/**
 * Reads what the command prints until the engine ends the stream. What has arrived is read before a failure
 * counts. Rejects with an infrastructure error if the connection or the stream fails, and with the error
 * itself if `onPiece` throws: that is a bug in Offsite, and not the engine's failure.
 */
function pump(socket: Duplex, { stdin, onPiece }: ExecCommand): Promise<void> {
  const frames = new FrameReader();
  return new Promise((resolve, reject) => {
    const end = (cause?: unknown) => {
      if (cause !== undefined && !(stdin !== undefined && isReset(cause)))
        return reject(execLost('The connection to the engine broke while a command ran.', cause));
      try {
        resolve(frames.end());
      } catch (cut) {
        reject(cut);
      }
    };
    listenTo(
      socket,
      {
        data: (chunk: Buffer) => {
          for (const piece of frames.read(chunk)) onPiece(piece);
        },
        end: () => end(),
        error: end,
        close: () => end(new Error('The connection was closed before its end.')),
      },
      reject,
    );
  });
}

/**
 * A command may end without reading its input. The engine then leaves the rest unread, and if it closes the
 * connection before the end of the output was seen here, the system reports a reset instead. Only the engine
 * knows whether the command has ended.
 */
function isReset(cause: unknown): boolean {
  const { code } = cause as { code?: unknown };
  return code === 'ECONNRESET' || code === 'EPIPE';
}
