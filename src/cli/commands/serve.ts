import { once } from 'node:events';
import { Command } from '@commander-js/extra-typings';
import { runners } from '../../../runners/index.ts';
import { systemClock } from '../../clock.ts';
import { permissions } from '../../contract/identity.ts';
import { openService } from '../../service/service.ts';
import { loadConfig } from '../../suite/config-file.ts';
import { logDestination } from '../../text/log-destination.ts';
import { text } from '../../text/printable.ts';
import { dataFolderOf } from '../data-folder.ts';
import { interruption } from '../interruption.ts';
import { port } from '../options.ts';
import { integrationsOf, localOrganization } from '../service-access.ts';
import { openTerminal } from '../terminal.ts';

export function serveCommand() {
  return new Command('serve')
    .description('serve the embedded Eval Service over HTTP until stopped')
    .option('-p, --port <port>', 'the port (default: any free port)', port, 0)
    .option('--host <host>', 'the address to listen on', '127.0.0.1')
    .option(
      '--data-folder, --data <folder>',
      'the folder of its database (default: $OFFSITE_HOME or ~/.local/share/offsite)',
    )
    .option('--config <file>', 'the configuration')
    .option('--quiet', 'do not log each request')
    .action(async (options) => {
      const { pino } = await import('pino');
      const { env } = process;
      const config = loadConfig({ named: options.config, env });
      const dataFolder = dataFolderOf(options.data, config, env);
      const log = pino({ level: options.quiet ? 'warn' : 'info' }, logDestination(openTerminal().err));
      using interrupted = interruption((message) => log.info(message));
      await using service = openService({
        dataFolder,
        clock: systemClock,
        integrations: integrationsOf(runners),
        log,
      });
      if (env.OFFSITE_API_KEY) {
        service.seedKey(env.OFFSITE_API_KEY, {
          organization: localOrganization,
          permissions,
          name: 'OFFSITE_API_KEY',
        });
      }
      interrupted.noteCrashesIn({ dataFolder, redact: (text) => text });
      const { url } = await service.listen({ host: options.host, port: options.port });
      openTerminal().out.print(text`Eval Service at ${url}; its data is in ${dataFolder}`);
      if (!interrupted.signal.aborted) await once(interrupted.signal, 'abort');
    });
}
