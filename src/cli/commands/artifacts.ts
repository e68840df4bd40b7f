import { lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { makeFolder } from '../../base/byte-store.ts';
import { inputError, messageOf } from '../../base/offsite-error.ts';
import { table } from '../../text/fit.ts';
import { stack, text } from '../../text/printable.ts';
import { plural, size } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { withConfigAndData } from '../options.ts';
import type { ShownArtifact } from '../output/summary.ts';
import { announcedTarget, trialOf } from '../show/open-trial.ts';

export function artifactsCommand() {
  return withConfigAndData(new Command('artifacts'))
    .description('list the files that a trial left as artifacts, or write them to a folder')
    .argument(
      '[trial...]',
      'the trial, as `offsite show` takes it: case/variant#ordinal (default: the only one of the last batch)',
    )
    .option('--out <folder>', 'write them below this folder, under their own names')
    .option('--force', 'replace files that exist')
    .option('--json', 'print one JSON document on stdout')
    .action(async (trial, options) => {
      await using context = CommandContext.open(options);
      const { out, err } = context;
      const ledger = context.ledger();
      const { details, record } = trialOf(ledger, announcedTarget(context, trial.join(' ')));
      const { artifacts } = details;
      const { artifactsOmitted = [], artifactsOmittedCount = artifactsOmitted.length } = record;
      if (artifactsOmittedCount > 0)
        err.print(`${plural(artifactsOmittedCount, 'further file')} exceeded the limits and were not kept`);
      if (options.out === undefined) {
        if (options.json) return out.json(artifacts);
        if (artifacts.length === 0) return out.print('the trial left no artifacts');
        const rows = artifacts.map(({ path, byteSize, sha256 }) => [path, size(byteSize), sha256]);
        return out.print(table(['artifact', { right: 'size' }, 'sha256'], rows));
      }
      const force = options.force === true;
      const read = (sha256: string) => ledger.blobs.read(sha256);
      const written = writeArtifacts(artifacts, options.out, { force, read });
      if (options.json) out.json(written);
      else if (written.length === 0) out.print('the trial left no artifacts');
      else out.print(stack(written.filter((one) => 'file' in one).map(({ file }) => text`${file}`)));
      refuse(written);
    });
}

/** Throws if artifacts were not written, and says why. */
function refuse(written: readonly Written[]): void {
  const refused = written.filter((one) => 'refused' in one);
  if (refused.length === 0) return;
  const reasons = refused.map(({ path, refused: why }) => `\n${path}: ${why}`).join('');
  const done = `${written.length - refused.length} of ${plural(written.length, 'artifact')} written`;
  throw inputError('ARTIFACTS_NOT_WRITTEN', `${done}; not written:${reasons}`, {
    hint: '`offsite trial artifacts TRIAL --json` names the blob with each content.',
  });
}

/** What became of an artifact: the file it was written to, or why it was not written. */
type Written = { path: string } & ({ file: string } | { refused: string });

interface WriteOptions {
  /** Whether to replace files that exist. */
  force: boolean;
  /** Reads a blob. Throws if it is missing or damaged. */
  read(sha256: string): Buffer;
}

/**
 * Writes artifacts below a folder, which is made if it does not exist. The names come from the sandbox, so no
 * name may lead out of the folder, follow a link, or replace another artifact. No name may make a folder a
 * repository either: the configuration of a repository names commands, and even `git status` runs them. An
 * artifact that cannot be written is returned with the reason, and the others are written.
 *
 * Files that take effect only when a person asks for it are written: `package.json`, `.npmrc` and scripts of
 * all kinds, and also `.envrc` and `.vscode/`, because direnv and Visual Studio Code ask before they trust a
 * folder. The folder should not be the home folder, where a shell obeys `.profile`.
 */
export function writeArtifacts(
  artifacts: readonly ShownArtifact[],
  folder: string,
  { force, read }: WriteOptions,
): Written[] {
  const root = resolve(folder);
  makeFolder(root);
  /** The files that this call wrote, by device and inode: names that differ only in case may be one file. */
  const ours = new Map<string, string>();
  return artifacts.map(({ path, sha256 }): Written => {
    const obstacle = badName(path);
    if (obstacle !== undefined) return { path, refused: obstacle };
    const file = join(root, path);
    try {
      const blocked = makeFolders(root, path) ?? makeRoom(file, force, ours);
      if (blocked !== undefined) return { path, refused: blocked };
      writeFileSync(file, read(sha256), { flag: 'wx' });
      ours.set(placeOf(file) ?? file, path);
      return { path, file };
    } catch (error) {
      return { path, refused: messageOf(error) };
    }
  });
}

/** Why a path is not the name of a file below a folder; undefined if it is. */
export function badName(path: string): string | undefined {
  if (path.includes('\0')) return 'its name contains a NUL';
  if (path.startsWith('/')) return 'its name is absolute';
  const parts = path.split('/');
  if (parts.includes('..')) return 'its name leads out of the folder';
  if (parts.some((part) => part === '' || part === '.')) return 'its name is not the name of a file';
  if (parts.some(isRepository)) return 'its name is that of a repository';
  if (plainName(parts.at(-1) ?? '') === 'head') return 'git could take its folder for a bare repository';
  return undefined;
}

/** Folders that make the folder around them a repository. Short names on Windows lack the dot. */
const repositories =
  /^(\.git|\.hg|\.svn|\.jj|\.sl|\.bzr|\.pijul|_darcs|cvs|(git|hg|svn|jj|sl|bzr|pijul)~\d+)$/;

function isRepository(name: string): boolean {
  return repositories.test(plainName(name));
}

/**
 * A name as the least strict file systems read it: HFS+ ignores invisible characters, Windows ignores dots
 * and spaces at the end and takes what follows a colon for a stream, and both ignore the case.
 */
function plainName(name: string): string {
  const visible = name.replaceAll(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '');
  const [file = ''] = visible.split(':');
  return file
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[. ]+$/, '');
}

/**
 * Makes the folders of a path. Returns what is in the way: a link, which could lead anywhere, or a folder
 * with a file `HEAD`. No artifact may have that name, so that folder may already be a repository of git.
 */
function makeFolders(root: string, path: string): string | undefined {
  const folders = dirname(path) === '.' ? [] : dirname(path).split('/');
  let at = root;
  for (const name of folders) {
    if (hasHead(at)) break;
    at = join(at, name);
    const found = lstatSync(at, { throwIfNoEntry: false });
    if (found?.isSymbolicLink()) return `${at} is a link`;
    if (found && !found.isDirectory()) return `${at} is a file`;
    if (!found) mkdirSync(at);
  }
  return hasHead(at) ? `git could take ${at} for a bare repository` : undefined;
}

function hasHead(folder: string): boolean {
  const found = lstatSync(join(folder, 'HEAD'), { throwIfNoEntry: false });
  return found !== undefined && !found.isDirectory();
}

/** Removes the file at a path if that is wanted. Returns what is in the way. */
function makeRoom(file: string, force: boolean, ours: ReadonlyMap<string, string>): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found) return undefined;
  const other = ours.get(placeOf(file) ?? file);
  if (other !== undefined) return `this disk takes its name for that of ${other}`;
  if (found.isDirectory()) return `${file} is a folder`;
  if (!force) return `${file} exists; --force replaces it`;
  rmSync(file);
  return undefined;
}

function placeOf(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false, bigint: true });
  return found && `${found.dev} ${found.ino}`;
}
