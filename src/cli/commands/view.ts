import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from '@commander-js/extra-typings';
import { text } from '../../text/printable.ts';
import { openViewer, type Viewer } from '../../viewer/server/viewer.ts';
import { CommandContext } from '../context.ts';
import { openBrowser } from '../open-browser.ts';
import { port, withConfigAndData } from '../options.ts';

/** Milliseconds that a browser has to open the page. */
const openingMs = 60_000;

export function viewCommand() {
  return withConfigAndData(new Command('view'))
    .description('show batches and trials in the browser, live, until stopped')
    .addOption(new Option('-p, --port <port>', 'the port').argParser(port).default(0, 'any free port'))
    .option('--open', 'open the default browser')
    .action(async (options) => {
      await using context = CommandContext.open(options);
      const { out, err, clock, redactor } = context;
      const { signal } = context.interruption({ doing: () => 'ending' });
      const ledger = context.ledger({ isChecked: false });
      const viewer = await openViewer({ ledger, redactor, clock, port: options.port });
      context.closeWith(viewer);
      out.print(text`${viewer.url}`);
      err.print(text`Shows ${context.dataFolder}. The address is for you alone. Ctrl-C ends it.`);
      if (options.open) await openIn(viewer, signal);
      if (!signal.aborted) await once(signal, 'abort');
    });
}

/** Opens the viewer in the default browser. If that fails, the printed address is enough. */
async function openIn(viewer: Viewer, signal: AbortSignal): Promise<void> {
  using _file = openBrowser(viewer.url);
  const isOver = sleep(openingMs, undefined, { signal }).catch(() => undefined);
  await Promise.race([viewer.used, isOver]);
}
