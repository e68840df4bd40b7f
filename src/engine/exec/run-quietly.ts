import { commandOutput } from '../../bounds/sandbox.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { startDeadline } from '../deadline.ts';
import { containerDamaged } from '../failure.ts';
import { openExec } from './open-exec.ts';

/**
 * Runs one of our own short `sh` scripts and resolves with what it printed to stdout. Its exit code is not asked for,
 * so that it costs two round trips; scripts say what matters in their output.
 */
export async function runQuietly(
  container: RunningContainer,
  script: string,
  options: { args?: string[]; user?: string | undefined } = {},
): Promise<string> {
  const chunks: Buffer[] = [];
  const opened = await openExec(container.client, container.id, {
    argv: ['/bin/sh', '-c', script, 'offsite', ...(options.args ?? [])],
    user: options.user ?? container.user,
    cwd: '/',
    onPiece: (piece) => {
      if (piece.stream === 'stdout') chunks.push(Buffer.from(piece.bytes));
    },
  });
  if (!opened.started) throw containerDamaged(`The container cannot run /bin/sh: ${opened.message}`);
  using exec = opened.exec;
  using deadline = startDeadline(container.client.clock, commandOutput.time.ownCommand);
  const first = await Promise.race([exec.streamEnded, deadline.reached]);
  if (first !== undefined) throw containerDamaged('A short command in the container did not end in time.');
  return Buffer.concat(chunks).toString();
}
