import { Command } from '@commander-js/extra-typings';
import type { DaemonStatus } from '../../agent/daemon/status.ts';
import { loadConfig } from '../../suite/config-file.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { statusText } from '../daemon/status-text.ts';
import { dataFolderOf } from '../data-folder.ts';
import { withPlaces } from '../options.ts';
import { openTerminal } from '../terminal.ts';

export function statusCommand() {
  return withPlaces(new Command('status'))
    .description('what the daemon of the data folder is at')
    .option('--json', 'print one JSON document on stdout')
    .action(async (options) => {
      const { env } = process;
      const config = loadConfig({ named: options.config, env });
      const answer = await askDaemon(dataFolderOf(options.dataFolder, config, env), 'GET', '/status');
      const { out } = openTerminal();
      if (options.json) out.json(answer);
      else out.print(statusText(answer as DaemonStatus));
    });
}
