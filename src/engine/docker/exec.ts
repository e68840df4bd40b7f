import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import type { ExecCommand, OpenExec, OpenedExec, OutputPiece } from '../port/exec.ts';
import { execLost } from '../port/failure.ts';
import type { DockerClient } from './client.ts';
import { engineMessage, engineStatus } from './failure.ts';
import { FrameReader } from './frame-reader.ts';

/**
 * Starts a command, attached by connection hijacking. Two round trips. If the engine answers the start with
 * "cannot run this", the result is `started: false`; older engines report that as output.
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

/** Engine 25 and later answer 400 when the program is missing; 404 and 409 concern the container instead. */
function refusedStart(thrown: unknown): string | undefined {
  return engineStatus(thrown) === 400 ? engineMessage(thrown) : undefined;
}

function attachedExec(
  client: DockerClient,
  created: Docker.Exec,
  socket: Duplex,
  command: ExecCommand,
): OpenExec {
  // Even after the end of the output, input that nobody read may break the connection.
  socket.on('error', () => undefined);
  const streamEnded = pump(socket, command.onPiece);
  // A caller that races this promise against a deadline may never await it again.
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
      // Older engines report why they could not start it as output of the command. It has no process then.
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
