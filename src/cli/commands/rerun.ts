import { Command } from '@commander-js/extra-typings';
import type { Client } from '../../client/client.ts';
import { Forbidden } from '../../client/refusal.ts';
import { text } from '../../text/printable.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { wholeNumber, withService } from '../options.ts';
import { checkedHere } from '../start/start-here.ts';

export function rerunCommand() {
  return withService(new Command('rerun'))
    .description('queue a new run of one cell of a batch')
    .argument('<batch>', "the batch's id")
    .argument('<cell>', '<case id>:<variant id>, as `offsite runs` shows them')
    .option('--trials <n>', 'how many trials (default: as many as the last run of the cell)', wholeNumber)
    .action(rerun);
}

interface RerunOptions extends CommonOptions {
  trials?: number | undefined;
}

async function rerun(id: string, cellKey: string, options: RerunOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const { signal } = context.interruption();
  context.platform = checkedHere;
  const { client, platform } = await context.service();
  const trials = options.trials ?? (await lastTrials(client, { batchId: id, cellKey }, signal));
  const answer = await client.call('evals.rerunCell', { id, cellKey, trials }, { signal });
  if (options.json) context.out.json(answer);
  else context.out.print(text`queued run ${answer.id}`);
  if (platform?.openRuns().some((run) => run.id === answer.id))
    context.note('`offsite serve` runs it, with the data folder of this command');
}

/**
 * How many trials the last run of a cell has, because a service may require the number. Undefined if the service
 * lists no such run, or not its trials.
 */
async function lastTrials(
  client: Client,
  { batchId, cellKey }: { batchId: string; cellKey: string },
  signal: AbortSignal,
): Promise<number | undefined> {
  // A variant's id has no colon; a case's may.
  const colon = cellKey.lastIndexOf(':');
  const [caseId, variant] = [cellKey.slice(0, colon), cellKey.slice(colon + 1)];
  if (colon < 1) return undefined;
  try {
    for await (const run of client.runs({ caseId }, { signal })) {
      if (run.batchId !== batchId || run.variant?.id !== variant) continue;
      return run.distribution?.trials ?? (run.trials?.length || undefined);
    }
  } catch (error) {
    // A key that may only write can still rerun the cell.
    if (!(error instanceof Forbidden)) throw error;
  }
  return undefined;
}
