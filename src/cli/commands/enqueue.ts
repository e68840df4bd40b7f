import { dirname } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { runners } from '../../../runners/index.ts';
import { writeTicket } from '../../agent/daemon/ticket.ts';
import { loadConfig } from '../../suite/config-file.ts';
import { loadSuite } from '../../suite/load-suite.ts';
import { hostEnvironmentOf } from '../../trial/host-environment.ts';
import { dataFolderOf } from '../data-folder.ts';
import { suiteOptions, withAllowOutside, withPlaces } from '../options.ts';
import { openTerminal } from '../terminal.ts';

export function enqueueCommand() {
  return withAllowOutside(withPlaces(new Command('enqueue')))
    .description(
      'check a suite and leave it to the daemon of the data folder, which runs it as soon as it can',
    )
    .argument('<file>', 'the suite file (YAML)')
    .action(async (file, options) => {
      const { env } = process;
      const config = loadConfig({ named: options.config, suiteFolder: dirname(file), env });
      const dataFolder = dataFolderOf(options.dataFolder, config, env);
      const host = hostEnvironmentOf(config, env);
      const plan = loadSuite(file, config, runners, suiteOptions(options, dataFolder, host));
      const ticket = await writeTicket(dataFolder, plan);
      openTerminal().out.print(`queued as ${ticket}; \`offsite status\` shows how far the daemon is`);
    });
}
