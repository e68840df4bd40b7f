import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runHostProgram, withSystemPath } from './host-program.ts';
import type { BaseImageRecipe } from './recipe.ts';

export interface RootFinish {
  root: string;
  recipe: BaseImageRecipe;
  /** Whether the user named the mirror, which then may lack what Debian's has beside the suite. */
  ownMirror: boolean;
  signal?: AbortSignal;
}

/** Files of a Debian that lives in a container: no services at install time, no caches, no manuals. */
const settings: Record<string, string> = {
  'usr/sbin/policy-rc.d': '#!/bin/sh\nexit 101\n',
  'etc/apt/apt.conf.d/docker-clean': [
    'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };',
    'Dir::Cache::pkgcache "";',
    'Dir::Cache::srcpkgcache "";',
    'Acquire::Languages "none";',
    'Acquire::GzipIndexes "true";',
    '',
  ].join('\n'),
  'etc/dpkg/dpkg.cfg.d/docker': [
    'force-unsafe-io',
    'path-exclude /usr/share/man/*',
    'path-exclude /usr/share/doc/*',
    'path-include /usr/share/doc/*/copyright',
    '',
  ].join('\n'),
  // The engine gives each container its own; what debootstrap copied is the host's.
  'etc/resolv.conf': '',
  'etc/hostname': '',
  'etc/machine-id': '',
};

/** Folders whose content is of no use in an image; npm's comes from trying it. */
const emptied = [
  'var/cache/apt',
  'var/lib/apt/lists',
  'var/cache/ldconfig',
  'usr/share/man',
  'root/.npm',
  'tmp',
];

/** Turns a fresh Debian into the image's content: sources, settings, a user `node` (uid 1000), and no leftovers. */
export async function finishRoot({ root, recipe, ownMirror, signal }: RootFinish): Promise<void> {
  for (const [path, text] of Object.entries(settings))
    await writeFile(join(root, path), text, { mode: 0o644 });
  await runInside(root, ['chmod', '755', '/usr/sbin/policy-rc.d'], signal);
  if (!ownMirror) await addSources(join(root, 'etc/apt/sources.list'), recipe.debianSuite);
  await runInside(
    root,
    ['useradd', '--uid', '1000', '--create-home', '--shell', '/bin/bash', 'node'],
    signal,
  );
  await rm(join(root, 'debootstrap'), { recursive: true, force: true });
  // The folders stay: apt and dpkg expect them.
  await runInside(root, ['find', '/var/log', '/var/cache/debconf', '-type', 'f', '-delete'], signal);
  for (const folder of emptied) await emptyFolder(join(root, folder));
  await mkdir(join(root, 'var/lib/apt/lists/partial'), { recursive: true });
  await mkdir(join(root, 'var/cache/apt/archives/partial'), { recursive: true });
  await runInside(
    root,
    ['find', '/usr/share/doc', '!', '-name', 'copyright', '!', '-type', 'd', '-delete'],
    signal,
  );
}

/** Adds the updates and the security fixes to the one source that debootstrap wrote. */
async function addSources(path: string, suite: string): Promise<void> {
  const source = (await readFile(path, 'utf8')).trim();
  const mirror = source.match(/^deb (\S+) /)?.[1];
  if (mirror === undefined) return;
  const more = [`deb ${mirror} ${suite}-updates main`, `deb ${mirror}-security ${suite}-security main`];
  await writeFile(path, `${[source, ...more].join('\n')}\n`);
}

async function emptyFolder(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []); // no such folder: nothing to empty
  for (const name of names) await rm(join(folder, name), { recursive: true, force: true });
}

async function runInside(
  root: string,
  [command = '', ...args]: string[],
  signal?: AbortSignal,
): Promise<void> {
  await runHostProgram({
    command: 'chroot',
    args: [root, command, ...args],
    purpose: `run ${command} inside the new base image`,
    env: withSystemPath({}),
    cwd: '/',
    deadlineMs: 60_000,
    signal,
  });
}
