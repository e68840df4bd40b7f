import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from '@commander-js/extra-typings';
import { text } from '../../text/printable.ts';
import { openViewer, type Viewer } from '../../viewer/server/viewer.ts';
import { CommandContext } from '../context.ts';
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

/**
 * Opens a secret address in the default browser. Other users of the machine can list the arguments of
 * programs, so the browser gets a file that leads to the address, and that only this user can read. Dispose
 * the result when the browser has used the file. If anything fails, nothing is opened, and nothing is thrown.
 */
export function openBrowser(address: string): Disposable {
  let folder: string | undefined;
  const remove = () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  try {
    // Only the owner can enter the new folder.
    folder = mkdtempSync(join(visibleFolder(), 'offsite-open-'));
    const file = join(folder, 'offsite.html');
    writeFileSync(file, pageTo(address), { mode: 0o600, flag: 'wx' });
    const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
    const started = spawn(opener, [file], { stdio: 'ignore', detached: true });
    started.on('error', remove).unref();
  } catch {
    remove();
  }
  return { [Symbol.dispose]: remove };
}

/** On Linux, a browser that is a Snap sees neither the system's temporary folder nor hidden folders. */
function visibleFolder(): string {
  return process.platform === 'linux' ? homedir() : tmpdir();
}

/** @param address has only characters that need no escaping in HTML */
function pageTo(address: string): string {
  return [
    '<!doctype html>',
    '<meta charset="utf-8">',
    '<meta name="referrer" content="no-referrer">',
    `<meta http-equiv="refresh" content="0; url=${address}">`,
    '<title>Offsite</title>',
    `<p><a href="${address}">Open Offsite</a></p>`,
    '',
  ].join('\n');
}
