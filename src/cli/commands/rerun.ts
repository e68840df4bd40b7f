import { Command } from '@commander-js/extra-typings';
import { text } from '../../text/printable.ts';
import { wholeNumber, withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function rerunCommand() {
  return withService(new Command('rerun'))
    .description('queue a new run of one cell of a batch')
    .argument('<batch>', "the batch's id")
    .argument('<cell>', '<case id>:<variant id>, as `offsite runs` shows them')
    .option('--trials <n>', 'how many trials (default: as many as before)', wholeNumber)
    .action((id, cellKey, options) =>
      askService(
        options,
        (client, signal) =>
          client.call('evals.rerunCell', { id, cellKey, trials: options.trials }, { signal }),
        (answer) => text`queued run ${answer.id}`,
      ),
    );
}
