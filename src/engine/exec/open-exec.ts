import type { Duplex, Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { EngineClient } from '../connection/engine-client.ts';
import { engineMessage, engineStatus, execLost } from '../failure.ts';
import { FrameReader, type OutputPiece } from './frame-reader.ts';

export interface ExecCommand {
  argv: readonly string[];
  /** Goes in the request's body, never into argv or a URL. */
  env?: Readonly<Record<string, string>>;
  cwd?: string | undefined;
  user?: string | undefined;
  /** Given to the process and closed. Without it the process reads end-of-file at once. */
  stdin?: Buffer | string | Readable | undefined;
  onPiece(piece: OutputPiece): void;
  signal?: AbortSignal | undefined;
}

export interface ExecState {
  running: boolean;
  exitCode: number | null;
  /** In the engine's own numbering; 0 when the process was never started. */
  pid: number;
}

/** A command running in a container, and the attached stream of what it prints. */
export interface OpenExec extends Disposable {
  /** As the engine knows it. */
  readonly id: string;
  /** Resolves when the engine ended the stream; rejects when it broke. Says nothing about success. */
  readonly streamEnded: Promise<void>;
  inspect(): Promise<ExecState>;
}

export type OpenedExec = { started: true; exec: OpenExec } | { started: false; message: string };

/**
 * Starts a command, attached by connection hijacking. Two round trips.
 * An engine that answers the start with "cannot run this" gives `started: false`; older engines say so as output.
 */
export async function openExec(
  client: EngineClient,
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

/** Engine 25 and later answer 400 when the program is missing; 404 and 409 are about the container instead. */
function refusedStart(thrown: unknown): string | undefined {
  const answer = (thrown as { cause?: unknown }).cause;
  return engineStatus(answer) === 400 ? engineMessage(answer) : undefined;
}

function attachedExec(
  client: EngineClient,
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
      return { running: state.Running, exitCode: state.ExitCode, pid: state.Pid };
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
