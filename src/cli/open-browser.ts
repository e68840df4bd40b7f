import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

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
    const [program, ...args] = opener(file);
    const started = spawn(program, args, { stdio: 'ignore', detached: true });
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

function opener(file: string): [string, ...string[]] {
  if (process.platform === 'darwin') return ['open', file];
  // `start` is a part of cmd, and takes its first quoted argument as a title.
  if (process.platform === 'win32') return ['cmd', '/c', 'start', '', file];
  return ['xdg-open', file];
}
