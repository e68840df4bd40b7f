import type { Client } from '../client/client.ts';
import type { Content } from '../text/output.ts';
import { CommandContext } from './context.ts';
import type { CommonOptions } from './settings.ts';

/**
 * Calls the configured service, or the embedded one, and prints the answer: with --json unchanged, otherwise
 * as `show` formats it. An interruption ends the call.
 */
export async function askService<Answer>(
  options: CommonOptions,
  ask: (client: Client, signal: AbortSignal) => Promise<Answer>,
  show: (answer: Answer) => Content,
): Promise<void> {
  await using context = CommandContext.open(options);
  const { signal } = context.interruption();
  const { client } = await context.service();
  const answer = await ask(client, signal);
  if (options.json) context.out.json(answer);
  else context.out.print(show(answer));
}
