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
import { basename, dirname, join, resolve } from 'node:path';
import { Document, isMap, isSeq, Scalar, visit, type YAMLMap } from 'yaml';
import { makeFolder } from '../../base/byte-store.ts';
import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { yamlFiles } from '../../bounds/suite.ts';
import { limits } from '../../contract/definition.ts';
import { contextEntries } from '../../suite/build-context.ts';
import { BadFile, type FileIssue, printFileIssue } from '../../suite/file-issues.ts';
import { SuiteFile } from '../../suite/suite-file.ts';
import type { TasksSource } from '../../suite/tasks-source.ts';
import { boundsProblem, exactYaml, yamlFileOf } from '../../suite/yaml-file.ts';
import { type LeftOut, leftOutOf, plannedTasks, type TaskPlanParts } from '../plan-tasks.ts';
import type { Note } from '../supported.ts';
import { isBelow, issueAt } from '../task-folder.ts';
import { caseYaml, type ImportedCase, NotCarried } from './case-yaml.ts';

export interface ImportOptions extends TaskPlanParts {
  /** Where the suite is written. */
  folder: string;
  /** Whether what is there is replaced. */
  force: boolean;
  /** The variants of the suite, as its file says them. */
  variants: readonly Record<string, unknown>[];
}

export interface ImportedTasks {
  /** Absolute paths. More than one if there are more cases than a suite may have. */
  suites: string[];
  imported: string[];
  /** Tasks that are not in the suite, with the reasons. */
  leftOut: LeftOut[];
}

/**
 * Writes the chosen tasks of a set as a suite, whose cases are those of the tasks. Throws an `input` error if
 * something would be overwritten, and as `planTasks` does.
 */
export function importTasks(
  source: TasksSource,
  { folder, force, variants, ...parts }: ImportOptions,
): ImportedTasks {
  const target = new ImportFolder(resolve(folder), force);
  const shared = sharedContexts(source, target);
  const cases: WrittenCase[] = [];
  const imported: string[] = [];
  const leftOut: LeftOut[] = [];
  for (const { case: given, ...read } of plannedTasks(source, parts)) {
    const { found, task } = read;
    if (!given || !task) {
      leftOut.push(leftOutOf(read));
      continue;
    }
    const { id, place } = found;
    const name = target.nameFor(id);
    try {
      const written = caseYaml(place, { entry: given.entry, named: task.named }, `cases/${name}`, shared);
      const one = { yaml: written.yaml, notes: task.remarks.notes };
      requireReadable({ id: target.name, variants, cases: [one] }, place);
      target.writeCase(name, written, place);
      cases.push(one);
      imported.push(id);
    } catch (error) {
      if (!(error instanceof NotCarried || error instanceof BadFile)) throw error;
      const reasons = error instanceof BadFile ? [...error.issues] : [issueAt(place, error.message)];
      leftOut.push({ id, state: 'does not run', reasons });
    }
  }
  if (cases.length === 0) throw noneImported(leftOut);
  const groups = groupsOf(cases, variants);
  const suites = groups.map((group, index) => {
    const name = suiteName(index, groups.length);
    const id = target.name + (groups.length > 1 ? `-${index + 1}` : '');
    target.writeSuite(name, suiteYaml({ id, variants, cases: group }));
    return join(target.path, name);
  });
  return { suites, imported, leftOut };
}

/** The build context that the user named for rows. All rows share it, and it may be large. */
function sharedContexts({ build }: TasksSource, target: ImportFolder): ReadonlyMap<string, string> {
  if (!build) return new Map();
  const context = realpathSync(build.context);
  return new Map([[context, target.writeShared(context)]]);
}

/** Throws {@link BadFile} if a suite of this case alone could not be read again. */
function requireReadable(suite: WrittenSuite, place: string): void {
  const text = suiteYaml(suite);
  const tooLarge = sizeProblem(text);
  if (tooLarge !== undefined) throw new NotCarried(`as a suite, it ${tooLarge}`);
  try {
    yamlFileOf(text, { file: place, schema: SuiteFile });
  } catch (error) {
    if (!(error instanceof BadFile)) throw error;
    // There is no file with these lines yet.
    throw new BadFile(
      error.issues.map(({ path, message }): FileIssue => issueAt(place, `as a suite, ${path}: ${message}`)),
    );
  }
}

/** The cases of each suite, so that no suite has too many cases and no file is too large. */
function groupsOf(
  cases: readonly WrittenCase[],
  variants: WrittenSuite['variants'],
): (readonly WrittenCase[])[] {
  const halves = (group: readonly WrittenCase[]): (readonly WrittenCase[])[] => {
    const text = suiteYaml({ id: '', variants, cases: group });
    if (group.length <= 1 || sizeProblem(text) === undefined) return [group];
    const middle = Math.ceil(group.length / 2);
    return [group.slice(0, middle), group.slice(middle)].flatMap(halves);
  };
  return Array.from({ length: Math.ceil(cases.length / limits.cases) }, (_, index) =>
    cases.slice(index * limits.cases, (index + 1) * limits.cases),
  ).flatMap(halves);
}

/** Why the text of a suite would not be read. Some room is left for its name, and for what a person adds. */
function sizeProblem(text: string): string | undefined {
  if (Buffer.byteLength(text) <= yamlFiles.bytes.file - 64 * 1024) return boundsProblem(text)?.message;
  return `has more than ${yamlFiles.bytes.file / 1024 ** 2} MiB`;
}

/** How many tasks an error names. */
const shown = 20;

function noneImported(leftOut: readonly LeftOut[]): OffsiteError {
  const reasons = leftOut.slice(0, shown).map(({ id, reasons: [first] }) => {
    return `${id}: ${first ? printFileIssue(first) : 'unknown'}`;
  });
  return inputError('NO_TASKS', ['none of these tasks can be imported:', ...reasons].join('\n'), {
    hint: 'Run tasks without a suite: offsite run --tasks PATH',
  });
}

function suiteName(index: number, count: number): string {
  return count === 1 ? 'suite.yaml' : `suite-${String(index + 1).padStart(String(count).length, '0')}.yaml`;
}

/** A case of the suite to write. */
interface WrittenCase {
  yaml: Record<string, unknown>;
  notes: readonly Note[];
}

interface WrittenSuite {
  id: string;
  variants: readonly Record<string, unknown>[];
  cases: readonly WrittenCase[];
}

/**
 * The text of a suite file. Texts of several lines are blocks. Comments say what Offsite does differently.
 */
function suiteYaml({ id, variants, cases }: WrittenSuite): string {
  const contents = {
    suite: { id, prompt: '{{instruction}}' },
    trials: 1,
    variants,
    cases: cases.map(({ yaml }) => yaml),
  };
  const document = new Document(contents, { aliasDuplicateObjects: false });
  document.commentBefore = ' Written by `offsite tasks import`. Change it as you like: docs/suites.md.';
  const list = document.get('cases');
  if (isSeq(list))
    for (const [index, item] of list.items.entries())
      if (isMap(item)) describe(item, cases[index]?.notes ?? []);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && deceiving.test(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  const text = document.toString(exactYaml);
  return text.replaceAll(new RegExp(deceiving, 'gu'), (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** Says above the case what Offsite ignores or does in another way. */
function describe(item: YAMLMap, notes: readonly Note[]): void {
  item.spaceBefore = true;
  const remarks = notes.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  if (remarks.length > 0) item.commentBefore = [...new Set(remarks)].map(asComment).join('\n');
}

/** Characters that change the order in which a text is shown, and characters that no editor shows. */
const deceiving = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** A comment ends with its line. */
function asComment(text: string): string {
  const plain = text.replaceAll(new RegExp(`\\p{Cc}|${deceiving.source}`, 'gu'), ' ');
  return ` note: ${plain}`;
}

/** The folder that a suite is written to. Throws `IMPORT_REFUSED` for what would be overwritten. */
class ImportFolder {
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

/** No file replaces another. Folders are copied last, with their links: no file is written through one. */
function writeInto(folder: string, { files, folders, copied }: ImportedCase): void {
  for (const below of ['', ...folders]) makeFolder(inFolder(folder, below));
  for (const { path, content, isExecutable } of files) {
    const file = inFolder(folder, path);
    makeFolder(dirname(file));
    writeFileSync(file, content, { flag: 'wx' });
    chmodSync(file, isExecutable ? 0o755 : 0o644);
  }
  for (const { from, to } of copied) copyContext(from, inFolder(folder, to));
}

function inFolder(folder: string, below: string): string {
  const path = join(folder, below);
  if (!isBelow(folder, path)) throw new NotCarried(`it puts a file at ${JSON.stringify(below)}`);
  return path;
}

/** Without the bits that let a program run as another user: these files lie on the host. */
const permissions = 0o777;

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
  return inputError('IMPORT_REFUSED', message, { hint });
}
