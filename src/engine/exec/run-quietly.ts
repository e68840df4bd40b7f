import { ByteStore } from '../../base/byte-store.ts';
import { startDeadline } from '../../base/deadline.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { ExecCommand, OpenExec } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { containerDamaged } from '../port/failure.ts';

/**
 * Runs one of Offsite's own short `sh` scripts as {@link outputOf} does. An agent may have replaced the
 * shell, so what it prints proves nothing.
 */
export function runQuietly(
  container: Pick<RunningContainer, 'port' | 'id' | 'user'>,
  script: string,
  options: { args?: string[]; user?: string | undefined } = {},
): Promise<string> {
  const argv = ['/bin/sh', '-c', script, 'offsite', ...(options.args ?? [])];
  return outputOf(container, argv, options.user);
}

/**
 * Runs a short command of Offsite's own and resolves with its stdout. It does not request the exit code,
 * which saves a round trip (two in total); such commands report what matters in their output. One that prints
 * without end, or does not end, makes the container unusable.
 *
 * @param user default: the container's
 */
export async function outputOf(
  { port, id, user: own }: Pick<RunningContainer, 'port' | 'id' | 'user'>,
  argv: string[],
  user = own,
): Promise<string> {
  const limits = { maxBytes: commandOutput.bytes.ownCommand, timeoutMs: commandOutput.time.ownCommand };
  return String((await readPrinted(port, id, { argv, user, ...limits })).bytes);
}

interface PrintedCommand extends Pick<ExecCommand, 'argv' | 'env' | 'user' | 'signal'> {
  maxBytes: number;
  timeoutMs: number;
  /** The error of a command that prints more. Default: the container is unusable. */
  flooded?: () => Error;
  /** What is thrown if it takes too long. */
  late?: () => Error;
}

/**
 * What a command of Offsite's own prints to its standard output. `inspect` tells how it ended. Throws
 * `ENGINE_CONTAINER_DAMAGED` if it cannot be started, or does not end in time.
 */
export async function readPrinted(
  { clock, containers }: EnginePort,
  id: string,
  { maxBytes, timeoutMs, flooded = printsOn, late = runsOn, ...command }: PrintedCommand,
): Promise<Pick<OpenExec, 'inspect'> & { bytes: Buffer }> {
  const store = new ByteStore();
  const { promise: tooMuch, reject } = Promise.withResolvers<never>();
  tooMuch.catch(() => undefined);
  const opened = await containers.exec(id, {
    ...command,
    cwd: '/',
    onPiece({ stream, bytes }) {
      if (stream !== 'stdout') return;
      if (store.size + bytes.length <= maxBytes) store.add(bytes);
      else reject(flooded());
    },
  });
  if (!opened.started)
    throw containerDamaged(`The container cannot run ${command.argv[0]}: ${opened.message}`);
  using exec = opened.exec;
  using deadline = startDeadline(clock, timeoutMs, command.signal);
  const isLate = await Promise.race([exec.streamEnded, deadline.reached, tooMuch]);
  command.signal?.throwIfAborted();
  if (isLate !== undefined) throw late();
  return { bytes: store.take(), inspect: () => exec.inspect() };
}

function runsOn(): Error {
  return containerDamaged('A short command in the container did not end in time.');
}

function printsOn(): Error {
  return containerDamaged('A short command in the container did not stop printing.');
}
