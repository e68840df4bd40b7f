import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { OffsiteError } from '../../offsite-error.ts';
import { contextEntries } from '../../suite/build-context.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import type { ImportedCase } from './case-yaml.ts';

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

  writeCase(name: string, { files, contexts }: ImportedCase): void {
    const folder = join(this.path, 'cases', name);
    // Files of an earlier import would be part of the case.
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const { from, to } of contexts) copyContext(from, join(folder, to));
    for (const { folder: below, entries } of files) {
      mkdirSync(join(folder, below), { recursive: true });
      for (const entry of entries) writeEntry(join(folder, below, entry.path), entry);
    }
  }

  writeSuite(name: string, text: string): void {
    const file = join(this.path, name);
    this.#refuseExisting(file);
    if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) rmSync(file);
    writeFileSync(file, text);
  }

  #refuseExisting(path: string): void {
    if (!this.#force && existsSync(path))
      throw refused(`${path} exists`, 'Name another folder with --out, or replace it with --force.');
  }
}

/** Without the bits that let a program run as another user: these files lie on the host. */
const permissions = 0o777;

/** Links stay links, which are not followed. */
function copyContext(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  const entries = contextEntries({ folder: from, ignore: '' });
  for (const { path, type, linkTarget = '' } of entries) {
    if (type === 'folder') mkdirSync(join(to, path));
    else if (type === 'symlink') symlinkSync(linkTarget, join(to, path));
    else copyFileSync(join(from, path), join(to, path));
  }
  // Last, since a folder may be closed to its owner.
  for (const { path, type, mode } of entries.toReversed())
    if (type !== 'symlink') chmodSync(join(to, path), mode & permissions);
}

function writeEntry(path: string, entry: PlacedFile): void {
  mkdirSync(dirname(path), { recursive: true });
  if ('linkTarget' in entry) symlinkSync(entry.linkTarget, path);
  else if ('folder' in entry) mkdirSync(path, { recursive: true });
  else writeFileSync(path, entry.content);
  if (!('linkTarget' in entry)) chmodSync(path, entry.mode & permissions);
}

function refused(message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code: 'IMPORT_REFUSED', kind: 'input', hint });
}
