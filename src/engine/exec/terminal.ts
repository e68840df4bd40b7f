import { watchDisk } from '../container/disk-watch.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { OpenTerminal, TerminalCommand } from '../port/containers.ts';
import { containerDamaged } from '../port/failure.ts';
import { knownExitCode } from './exit-code.ts';

export type TerminalRequest = Pick<TerminalCommand, 'argv' | 'cwd' | 'env' | 'size' | 'signal'>;

/** How a command on a terminal ended. `out-of-disk`: it wrote more than its container's `diskBytes`. */
export type TerminalEnd = { ended: 'exited'; exitCode: number } | { ended: 'out-of-disk' };

/** A command on a terminal. Disposing closes the stream; the command ends with its container. */
export interface ContainerTerminal extends Pick<OpenTerminal, 'stream' | 'resize'>, Disposable {
  /** Resolves when the stream has ended and the engine knows the exit code. */
  readonly ended: Promise<TerminalEnd>;
}

/** Milliseconds between two questions for the exit code of a command whose stream has ended. */
const pollMs = 20;
/** Milliseconds until a command whose stream has ended counts as cut off. */
const notedMs = 5_000;

/**
 * Runs a command on a terminal of its own, with the container's environment and user. Throws an
 * infrastructure error if it cannot be started.
 */
export async function openTerminal(
  container: RunningContainer,
  request: TerminalRequest,
): Promise<ContainerTerminal> {
  const { port, id, env, user } = container;
  const opened = await port.containers.terminal(id, { ...request, env: { ...env, ...request.env }, user });
  if (!opened.started) throw containerDamaged(`The command cannot be started: ${opened.message}`);
  const { terminal } = opened;
  const disk = watchDisk(container, container.diskBytes);
  const closed = new Promise<void>((resolve) => terminal.stream.once('close', resolve));
  const ended = Promise.race([
    closed.then(() => exitOf(container, terminal)),
    disk.exceeded.then((why) => ({ ended: why })),
  ]);
  // The caller may close the terminal and never ask.
  ended.catch(() => undefined);
  return {
    stream: terminal.stream,
    resize: (size) => terminal.resize(size),
    ended,
    [Symbol.dispose]() {
      disk[Symbol.dispose]();
      terminal[Symbol.dispose]();
    },
  };
}

async function exitOf({ port: { clock } }: RunningContainer, terminal: OpenTerminal): Promise<TerminalEnd> {
  for (const end = clock.now() + notedMs; ; await clock.sleep(pollMs)) {
    const state = await terminal.inspect();
    if (!state.running) return { ended: 'exited', exitCode: knownExitCode(state) };
    if (clock.now() > end) throw containerDamaged('The connection to a command on a terminal was cut.');
  }
}
