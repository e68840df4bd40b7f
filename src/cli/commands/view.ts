import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command, Option } from '@commander-js/extra-typings';
import { text } from '../../text/printable.ts';
import { openViewer } from '../../viewer/server/viewer.ts';
import { CommandContext } from '../context.ts';
import { port, withConfigAndData } from '../options.ts';

export function viewCommand() {
  return withConfigAndData(new Command('view'))
    .description('show batches and trials in the browser, live, until stopped')
    .addOption(new Option('-p, --port <port>', 'the port').argParser(port).default(0, 'any free port'))
    .option('--open', 'open the default browser')
    .action(async (options) => {
      await using context = CommandContext.open(options);
      const { out, err, clock, redactor } = context;
      const { signal } = context.interruption({ doing: 'ending' });
      const viewer = await openViewer({ ledger: context.ledger(), redactor, clock, port: options.port });
      context.closeWith(viewer);
      out.print(text`${viewer.url}`);
      err.print(text`Shows ${context.dataFolder}. The address is for you alone. Ctrl-C ends it.`);
      if (options.open) openBrowser(viewer.urlOnce());
      if (!signal.aborted) await once(signal, 'abort');
    });
}

/**
 * Opens the default browser. If that fails, the printed address is enough.
 *
 * @param url no secret: other users of the machine can list the arguments of programs
 */
function openBrowser(url: string): void {
  const [program, ...args] = opener(url);
  const started = spawn(program, args, { stdio: 'ignore', detached: true });
  started.on('error', () => undefined).unref();
}

function opener(url: string): [string, ...string[]] {
  if (process.platform === 'darwin') return ['open', url];
  // `start` is a part of cmd, and takes its first quoted argument as a title.
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '', url];
  return ['xdg-open', url];
}
