import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { listenTo } from '../../base/foreign-traffic.ts';
import type { OpenedTerminal, TerminalCommand, TerminalSize } from '../port/exec.ts';
import type { DockerClient } from './client.ts';
import { refusedStart } from './exec.ts';

/**
 * How often the first size is sent, and milliseconds between: the engine may still be starting the command.
 */
const firstSize = { tries: 10, waitMs: 20 };

/** Starts a command on a terminal. Three round trips: engines before 23 take its size only afterwards. */
export async function openTerminal(
  client: DockerClient,
  containerId: string,
  { argv, env = {}, cwd, user, size, signal }: TerminalCommand,
): Promise<OpenedTerminal> {
  let created: Docker.Exec;
  let stream: Duplex;
  try {
    created = await client.call(
      'preparing a terminal',
      (abortSignal) =>
        client.docker.getContainer(containerId).exec({
          Cmd: [...argv],
          Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
          ...{ AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: true },
          ...(cwd === undefined ? {} : { WorkingDir: cwd }),
          ...(user === undefined ? {} : { User: user }),
          abortSignal,
        }),
      { signal },
    );
    stream = await client.call(
      'starting a command on a terminal',
      (abortSignal) => created.start({ hijack: true, stdin: true, Detach: false, Tty: true, abortSignal }),
      { signal },
    );
  } catch (thrown) {
    const refusal = refusedStart(thrown);
    if (refusal === undefined) throw thrown;
    return { started: false, message: refusal };
  }
  // An error may come before anybody listens; 'close' reports it too.
  listenTo(stream, {}, () => stream.destroy());
  await sendFirstSize(client, created, size);
  return {
    started: true,
    terminal: {
      stream,
      async resize(to) {
        await resized(client, created, to);
      },
      async inspect() {
        const state = await client.call('asking how a command ended', (abortSignal) =>
          created.inspect({ abortSignal }),
        );
        return { running: state.Running, exitCode: state.ExitCode, neverStarted: state.Pid === 0 };
      },
      [Symbol.dispose]: () => void stream.destroy(),
    },
  };
}

async function sendFirstSize(client: DockerClient, exec: Docker.Exec, size: TerminalSize): Promise<void> {
  for (let attempt = 1; !(await resized(client, exec, size)) && attempt < firstSize.tries; attempt++)
    await client.clock.sleep(firstSize.waitMs);
}

/** Returns whether the engine took the size. It does not while the command starts, and once it has ended. */
async function resized(
  client: DockerClient,
  exec: Docker.Exec,
  { rows, columns }: TerminalSize,
): Promise<boolean> {
  try {
    await client.call('resizing a terminal', (abortSignal) =>
      exec.resize({ h: rows, w: columns, abortSignal }),
    );
    return true;
  } catch {
    return false;
  }
}
