import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import type { CommonOptions } from '../settings.ts';

export async function drainWorker(options: CommonOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const answer = await askDaemon(context.dataFolder, 'POST', '/drain', 'fleet-worker');
  const { running } = answer as { running?: unknown };
  const trials = plural(Number(running ?? 0), 'trial');
  context.out.print(text`draining: the worker ends when ${trials} have ended and are reported`);
}
