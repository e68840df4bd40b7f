import { Command } from '@commander-js/extra-typings';
import type { DaemonStatus } from '../../agent/daemon/status.ts';
import { CommandContext } from '../context.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { statusText } from '../daemon/status-text.ts';
import { withConfigAndData } from '../options.ts';

export function statusCommand() {
  return withConfigAndData(new Command('status'))
    .description('show what the daemon is doing')
    .option('--json', 'print one JSON document on stdout')
    .action(async (options) => {
      await using context = CommandContext.open(options);
      const { dataFolder, out } = context;
      const answer = await askDaemon(dataFolder, 'GET', '/status');
      if (options.json) out.json(answer);
      else out.print(statusText(answer as DaemonStatus));
    });
}
