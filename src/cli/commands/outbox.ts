import { Command } from '@commander-js/extra-typings';
import { runners } from '../../../runners/index.ts';
import { deliverLeftovers } from '../../agent/leftovers.ts';
import { systemClock } from '../../clock.ts';
import { Ledger } from '../../ledger/ledger.ts';
import { loadConfig } from '../../suite/config-file.ts';
import { dataFolderOf } from '../data-folder.ts';
import { exitCodes } from '../failure.ts';
import { interruption } from '../interruption.ts';
import { withService } from '../options.ts';
import { table } from '../output/table.ts';
import { openReporting } from '../workplace.ts';

export function outboxCommand() {
  return withService(new Command('outbox'))
    .description('list the results that no service has taken yet, or send them')
    .option('--send', 'send those that wait for the configured service')
    .action(async (options) => {
      const config = loadConfig({ named: options.config, env: process.env });
      const dataFolder = dataFolderOf(options.dataFolder, config, process.env);
      const note = (line: string) => console.error(line);
      if (options.send) {
        using interrupted = interruption(note);
        await using reporting = await openReporting({
          config,
          dataFolder,
          env: process.env,
          clock: systemClock,
          runners,
          insecureHttp: options.insecureHttp,
          note,
        });
        await deliverLeftovers(reporting, interrupted.signal, note);
      }
      using ledger = new Ledger(dataFolder, systemClock);
      const pending = ledger.outbox.pending();
      if (options.json) console.log(JSON.stringify(pending, null, 2));
      else if (pending.length === 0) console.log('nothing waits to be reported');
      else {
        const rows = pending.map(({ service, runId, ordinal, state, tries, answer }) => [
          service,
          `${runId} #${ordinal}`,
          state,
          String(tries),
          answer ?? '',
        ]);
        const titles = ['service', 'trial', 'state', 'tries', 'last answer'];
        console.log(
          table(
            titles.map((title) => ({ title })),
            rows,
          ),
        );
      }
      if (options.send && pending.length > 0) process.exitCode = exitCodes.infrastructure;
    });
}
