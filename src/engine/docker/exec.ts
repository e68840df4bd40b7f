import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import type { ExecCommand, OpenExec, OpenedExec, OutputPiece } from '../port/exec.ts';
import { execLost } from '../port/failure.ts';
import type { DockerClient } from './client.ts';
import { engineMessage, engineStatus } from './failure.ts';
import { FrameReader } from './frame-reader.ts';

/**
 * Starts a command, attached by connection hijacking. Two round trips. An engine that answers the start with
 * "cannot run this" gives `started: false`; older engines say so as output.
 */
export async function openExec(
  client: DockerClient,
  containerId: string,
  command: ExecCommand,
): Promise<OpenedExec> {
  const { signal } = command;
  const wantsInput = command.stdin !== undefined;
  const created = await client.call(
    'preparing a command',
    (abortSignal) =>
      client.docker.getContainer(containerId).exec({
        Cmd: [...command.argv],
        Env: Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${value}`),
        AttachStdin: wantsInput,
        AttachStdout: true,
        AttachStderr: true,
        ...(command.cwd === undefined ? {} : { WorkingDir: command.cwd }),
        ...(command.user === undefined ? {} : { User: command.user }),
        abortSignal,
      }),
    { signal },
  );
  try {
    const socket = await client.call(
      'starting a command',
      (abortSignal) =>
        created.start({ hijack: true, stdin: wantsInput, Detach: false, Tty: false, abortSignal }),
      { signal },
    );
    return { started: true, exec: attachedExec(client, created, socket, command) };
  } catch (thrown) {
    const refusal = refusedStart(thrown);
    if (refusal === undefined) throw thrown;
    return { started: false, message: refusal };
  }
}

/**
 * Engine 25 and later answer 400 when the program is missing; 404 and 409 are about the container instead.
 */
function refusedStart(thrown: unknown): string | undefined {
  return engineStatus(thrown) === 400 ? engineMessage(thrown) : undefined;
}

function attachedExec(
  client: DockerClient,
  created: Docker.Exec,
  socket: Duplex,
  command: ExecCommand,
): OpenExec {
  // After the last of its output, too, the connection may break under input that nobody read.
  socket.on('error', () => undefined);
  const streamEnded = pump(socket, command.onPiece);
  // Whoever races this promise against a deadline may never look at it again.
  streamEnded.catch(() => undefined);
  const { stdin } = command;
  if (typeof stdin === 'string' || Buffer.isBuffer(stdin)) socket.end(stdin);
  else stdin?.pipe(socket);
  return {
    id: created.id,
    streamEnded,
    async inspect() {
      const state = await client.call('asking how a command ended', (abortSignal) =>
        created.inspect({ abortSignal }),
      );
      // Older engines say why they could not start it as if the command had printed it. It has no process
      // then.
      return { running: state.Running, exitCode: state.ExitCode, neverStarted: state.Pid === 0 };
    },
    [Symbol.dispose]() {
      if (stdin !== undefined && typeof stdin !== 'string' && !Buffer.isBuffer(stdin)) stdin.destroy();
      socket.destroy();
    },
  };
}

async function pump(socket: Duplex, onPiece: (piece: OutputPiece) => void): Promise<void> {
  const frames = new FrameReader();
  try {
    for await (const chunk of socket) {
      for (const piece of frames.read(chunk as Buffer)) onPiece(piece);
    }
  } catch (cause) {
    throw cause instanceof Error && cause.name === 'OffsiteError'
      ? cause
      : execLost('The connection to the engine broke while a command ran.', cause);
  }
  frames.end();
}
