import { Command } from '@commander-js/extra-typings';
import { text } from '../../text/printable.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { wholeNumber, withService } from '../options.ts';
import { checkedHere } from '../start/start-here.ts';

export function rerunCommand() {
  return withService(new Command('rerun'))
    .description('queue a new run of one cell of a batch')
    .argument('<batch>', "the batch's id")
    .argument('<cell>', '<case id>:<variant id>, as `offsite runs` shows them')
    .option('--trials <n>', 'how many trials (default: as many as before)', wholeNumber)
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
  const answer = await client.call('evals.rerunCell', { id, cellKey, trials: options.trials }, { signal });
  if (options.json) context.out.json(answer);
  else context.out.print(text`queued run ${answer.id}`);
  if (platform?.openRuns().some((run) => run.id === answer.id))
    context.note('`offsite serve` runs it, with the data folder of this command');
}
