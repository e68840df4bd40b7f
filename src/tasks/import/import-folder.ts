import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../../base/make-folder.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { contextEntries } from '../../suite/build-context.ts';
import { isBelow } from '../task-folder.ts';
import type { ImportedCase } from './case-yaml.ts';
import { NotCarried } from './words.ts';

/** The folder that a suite is written to. Throws `IMPORT_REFUSED` for what would be overwritten. */
export class ImportFolder {
  readonly path: string;
  /** A name for the suite. */
  readonly name: string;
  readonly #force: boolean;
  readonly #names = new Set<string>();

  constructor(path: string, force: boolean) {
    this.path = path;
    this.name = basename(path) || 'tasks';
    this.#force = force;
    for (const part of [path, join(path, 'cases')])
      if (lstatSync(part, { throwIfNoEntry: false })?.isSymbolicLink())
        throw refused(`${part} is a link`, 'Name the folder that it leads to.');
    for (const each of ['suite.yaml', 'cases']) this.#refuseExisting(join(path, each));
  }

  /** The name of a case's folder: its id, if that can be one. Names that differ only in case get a number. */
  nameFor(id: string): string {
    const plain = id.replaceAll(/[^\w@+-]+/g, '_').slice(0, 100) || '_';
    const isFree = (name: string) => !this.#names.has(name.toLowerCase());
    let name = /^[\w@+-][\w.@+-]{0,99}$/.test(id) ? id : plain;
    for (let count = 2; !isFree(name); count++) name = `${plain}-${count}`;
    this.#names.add(name.toLowerCase());
    return name;
  }

  /**
   * Throws {@link NotCarried} for files that cannot lie beside each other here.
   *
   * @param place of the task that becomes the case
   */
  writeCase(name: string, written: ImportedCase, place: string): void {
    const folder = join(this.path, 'cases', name);
    this.#refuseOwnTask(folder, place);
    // Files of an earlier import would be part of the case.
    rmSync(folder, { recursive: true, force: true });
    try {
      writeInto(folder, written);
    } catch (error) {
      const { code = '', path, dest = path } = error as NodeJS.ErrnoException & { dest?: string };
      if (!clashes.has(code)) throw error;
      rmSync(folder, { recursive: true, force: true });
      throw new NotCarried(`its file ${dest} cannot be written: ${clashes.get(code)}`);
    }
  }

  /** Writes a build context that all cases share, and returns where it is, relative to the suite. */
  writeShared(context: string): string {
    const folder = join(this.path, 'build');
    this.#refuseExisting(folder);
    this.#refuseOwnTask(folder, context);
    rmSync(folder, { recursive: true, force: true });
    copyContext(context, folder);
    return 'build';
  }

  writeSuite(name: string, text: string): void {
    const file = join(this.path, name);
    this.#refuseExisting(file);
    if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(file);
    writeFileSync(file, text);
  }

  /** Refuses a folder in or around the task itself: the folder is removed before it is written again. */
  #refuseOwnTask(folder: string, place: string): void {
    if (!existsSync(folder)) return;
    const [target, source] = [realpathSync(folder), realpathSync(place)];
    if (isBelow(target, source) || isBelow(source, target))
      throw refused(`${folder} belongs to the tasks themselves`, 'Name another folder with --out.');
  }

  #refuseExisting(path: string): void {
    if (!this.#force && existsSync(path))
      throw refused(`${path} exists`, 'Name another folder with --out, or replace it with --force.');
  }
}

/** Errors of the file system that come from the names of a task's files. */
const clashes: ReadonlyMap<string, string> = new Map([
  ['EEXIST', 'another one has its name'],
  ['EISDIR', 'a folder has its name'],
  ['ENOTDIR', 'a file has the name of its folder'],
  ['ENAMETOOLONG', 'its name is too long'],
]);

/** Without the bits that let a program run as another user: these files lie on the host. */
const permissions = 0o777;

/**
 * Writes links last, so that nothing is written through one: the files of a task may have a link, and a file
 * whose path goes through it. No file replaces another.
 */
function writeInto(folder: string, { files, contexts }: ImportedCase): void {
  makeFolder(folder);
  const entries = files.flatMap(({ folder: below, entries }) => {
    makeFolder(inFolder(folder, below));
    return entries.map((entry) => ({ ...entry, path: inFolder(folder, join(below, entry.path)) }));
  });
  for (const { from, to } of contexts) copyContext(from, inFolder(folder, to));
  for (const entry of entries) {
    if ('linkTarget' in entry) continue;
    const isFolder = 'folder' in entry;
    makeFolder(isFolder ? entry.path : dirname(entry.path));
    if (isFolder) continue;
    writeFileSync(entry.path, entry.content, { flag: 'wx' });
    chmodSync(entry.path, entry.mode & permissions);
  }
  for (const entry of entries) if ('linkTarget' in entry) symlinkSync(entry.linkTarget, entry.path);
  // Last, since a folder may be closed to its owner.
  for (const entry of entries.toReversed())
    if ('folder' in entry) chmodSync(entry.path, entry.mode & permissions);
}

function inFolder(folder: string, below: string): string {
  const path = join(folder, below);
  if (!isBelow(folder, path)) throw new NotCarried(`it puts a file at ${JSON.stringify(below)}`);
  return path;
}

/** Copies links as links, and does not follow them. */
function copyContext(from: string, to: string): void {
  makeFolder(dirname(to));
  mkdirSync(to);
  const entries = contextEntries({ folder: from, ignore: '' });
  for (const { path, type, linkTarget = '' } of entries) {
    if (type === 'folder') mkdirSync(join(to, path));
    else if (type === 'symlink') symlinkSync(linkTarget, join(to, path));
    else copyFileSync(join(from, path), join(to, path));
  }
  for (const { path, type, mode } of entries.toReversed())
    if (type !== 'symlink') chmodSync(join(to, path), mode & permissions);
}

function refused(message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code: 'IMPORT_REFUSED', kind: 'input', hint });
}
