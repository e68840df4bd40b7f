import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const neededNode = 24;

/**
 * The Node that runs the TypeScript: the one that is a dependency, else the user's own if it is new enough.
 * @param {string} root
 * @returns {Promise<{ok: true, path: string} | {ok: false, message: string}>}
 */
export async function projectNode(root) {
  const pinned = join(root, 'node_modules', '.bin', 'node');
  const version = await versionOf(pinned);
  if (version >= neededNode) return { ok: true, path: pinned };
  if (Number.parseInt(process.versions.node, 10) >= neededNode) return { ok: true, path: process.execPath };
  const what = version === undefined ? 'is missing or does not run here' : `is version ${version}`;
  return {
    ok: false,
    message: [
      `Offsite runs under Node ${neededNode} or newer.`,
      `npm installs one with the dependencies, but ${pinned} ${what}.`,
      'If npm is set to leave out optional packages or install scripts, install them this once:',
      '',
      '  npm ci --include=optional --ignore-scripts=false',
      '',
      `Otherwise install Node ${neededNode} yourself (needed on macOS, and on a Linux without glibc).`,
    ].join('\n'),
  };
}

/** The major version that the program reports; undefined if it cannot run, whatever the reason. */
function versionOf(path) {
  return promisify(execFile)(path, ['--version'], { timeout: 10_000 }).then(
    ({ stdout }) => Number.parseInt(stdout.replace(/^v/, ''), 10),
    () => undefined,
  );
}
