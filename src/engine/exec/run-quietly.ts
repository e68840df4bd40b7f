import { commandOutput } from '../../bounds/sandbox.ts';
import { startDeadline } from '../../deadline.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { containerDamaged } from '../failure.ts';

/**
 * Runs one of Offsite's own short `sh` scripts and resolves with its stdout. It does not request the exit
 * code, which saves a round trip (two in total); scripts report what matters in their output. An agent may
 * have replaced the shell: if it prints without end, or does not end, the container is unusable.
 */
export async function runQuietly(
  container: RunningContainer,
  script: string,
  options: { args?: string[]; user?: string | undefined } = {},
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const flooded = Promise.withResolvers<'flooded'>();
  const { clock } = container.port;
  const opened = await container.port.containers.exec(container.id, {
    argv: ['/bin/sh', '-c', script, 'offsite', ...(options.args ?? [])],
    user: options.user ?? container.user,
    cwd: '/',
    onPiece: (piece) => {
      if (piece.stream !== 'stdout') return;
      size += piece.bytes.length;
      if (size <= commandOutput.bytes.ownCommand) chunks.push(Buffer.from(piece.bytes));
      else flooded.resolve('flooded');
    },
  });
  if (!opened.started) throw containerDamaged(`The container cannot run /bin/sh: ${opened.message}`);
  using exec = opened.exec;
  using deadline = startDeadline(clock, commandOutput.time.ownCommand);
  const first = await Promise.race([exec.streamEnded, deadline.reached, flooded.promise]);
  if (first === 'flooded') throw containerDamaged('A short command in the container did not stop printing.');
  if (first !== undefined) throw containerDamaged('A short command in the container did not end in time.');
  return Buffer.concat(chunks).toString();
}
