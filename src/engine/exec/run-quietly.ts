import { startDeadline } from '../../base/deadline.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { containerDamaged } from '../failure.ts';

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
  container: Pick<RunningContainer, 'port' | 'id' | 'user'>,
  argv: string[],
  user = container.user,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const flooded = Promise.withResolvers<'flooded'>();
  const { clock } = container.port;
  const opened = await container.port.containers.exec(container.id, {
    argv,
    user,
    cwd: '/',
    onPiece: (piece) => {
      if (piece.stream !== 'stdout') return;
      size += piece.bytes.length;
      if (size <= commandOutput.bytes.ownCommand) chunks.push(Buffer.from(piece.bytes));
      else flooded.resolve('flooded');
    },
  });
  if (!opened.started) throw containerDamaged(`The container cannot run ${argv[0]}: ${opened.message}`);
  using exec = opened.exec;
  using deadline = startDeadline(clock, commandOutput.time.ownCommand);
  const first = await Promise.race([exec.streamEnded, deadline.reached, flooded.promise]);
  if (first === 'flooded') throw containerDamaged('A short command in the container did not stop printing.');
  if (first !== undefined) throw containerDamaged('A short command in the container did not end in time.');
  return Buffer.concat(chunks).toString();
}
