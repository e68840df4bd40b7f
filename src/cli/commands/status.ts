import { Command } from '@commander-js/extra-typings';
import type { DaemonStatus } from '../../agent/daemon/status.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { statusText } from '../daemon/status-text.ts';
import { withConfigAndData } from '../options.ts';
import { openSettings } from '../settings.ts';

export function statusCommand() {
  return withConfigAndData(new Command('status'))
    .description('show what the daemon is doing')
    .option('--json', 'print one JSON document on stdout')
    .action(async (options) => {
      const { dataFolder, out } = await openSettings(options);
      const answer = await askDaemon(dataFolder, 'GET', '/status');
      if (options.json) out.json(answer);
      else out.print(statusText(answer as DaemonStatus));
    });
}
