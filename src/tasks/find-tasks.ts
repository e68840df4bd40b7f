import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import picomatch from 'picomatch';
import { inputError, messageOf, type OffsiteError } from '../base/offsite-error.ts';
import { taskSets } from '../bounds/tasks.ts';
import { Identifier } from '../contract/definition.ts';
import { randomIndex } from '../stats/repeats.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { orNearest } from '../text/nearest.ts';
import { isRegistry, readDataset, readRegistry } from './harbor/dataset.ts';
import { type RowPlace, rowId } from './swe-bench/row.ts';
import { rowsOf, textOf } from './swe-bench/rows.ts';
import type { FoundTask, FoundTasks, TaskFormat } from './task.ts';
import { issueAt } from './task-folder.ts';

/** The file that makes a folder a task. */
const taskFiles: readonly [file: string, format: TaskFormat][] = [
  ['task.toml', 'harbor'],
  ['task.yaml', 'terminal-bench'],
];

/**
 * Finds the tasks at a path: the folder of a task, a folder with tasks at some depth, a `dataset.toml`, a
 * `registry.json`, or a file of rows in JSON Lines. Throws an `input` error if there is none.
 *
 * @param format finds only tasks of this format
 */
export function findTasks(path: string, format?: TaskFormat): FoundTasks {
  const found = located(resolve(path), format);
  if (found.tasks.length === 0) {
    const kind = format === undefined ? '' : ` in the format ${format}`;
    throw notFound(`there is no task${kind} in ${path}`);
  }
  return { tasks: withoutDoubles(found.tasks), notes: found.notes };
}

function located(path: string, format: TaskFormat | undefined): FoundTasks {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return inFolder(realpathSync(path), format);
  if (!stats?.isFile()) throw notFound(`there is no file or folder ${path}`);
  const name = basename(path);
  // The user named this path, so it may lead anywhere.
  const file = realpathSync(path);
  if (taskFiles.some(([file]) => file === name) || name === 'dataset.toml')
    return inFolder(dirname(path), format);
  if (name === 'registry.json' || (name.endsWith('.json') && isRegistry(file))) return readRegistry(file);
  if (/\.(jsonl|ndjson)$/.test(name) || format === 'swe-bench') return inRows(file);
  throw notFound(`${path} is no file of tasks: expected dataset.toml, registry.json or *.jsonl`);
}

function inFolder(folder: string, format: TaskFormat | undefined): FoundTasks {
  const found = below(folder, format);
  const { tasks, notes } = found;
  const names = readdirSync(folder);
  if (format !== undefined && format !== 'harbor') return found;
  if (names.includes('dataset.toml')) return readDataset(folder, found);
  if (!names.includes('registry.json') || tasks.some(({ place }) => place === folder)) return found;
  const registry = join(folder, 'registry.json');
  if (isRegistry(registry)) return tasks.length === 0 ? readRegistry(registry) : found;
  return { tasks, notes: [...notes, issueAt(registry, 'is no registry of tasks, and is ignored')] };
}

/** The folders of tasks in a folder, and not those within a task. */
function below(folder: string, wanted: TaskFormat | undefined): FoundTasks {
  const tasks: FoundTask[] = [];
  const notes: FileIssue[] = [];
  let seen = 0;
  const look = (folder: string, depth: number): void => {
    const entries = entriesOf(folder, notes);
    seen += entries.length;
    if (seen > taskSets.count.entries)
      throw tooMuch(`has more than ${taskSets.count.entries} files and folders to look at`, folder);
    const names = new Set(entries.map(({ name }) => name));
    const [, format] = taskFiles.find(([file, each]) => names.has(file) && (wanted ?? each) === each) ?? [];
    if (format !== undefined || looksLikeTask(names, wanted)) {
      const id = basename(folder);
      add(tasks, { id, format: format ?? 'harbor', place: folder, ...problemOf(id, folder) });
      return;
    }
    for (const entry of depth < taskSets.count.depth ? entries : []) {
      const path = join(folder, entry.name);
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
      if (entry.isDirectory()) look(path, depth + 1);
      else if (entry.isSymbolicLink() && leadsToFolder(path))
        notes.push(issueAt(path, 'is a link to a folder, which is not followed'));
    }
  };
  look(folder, 0);
  return { tasks, notes };
}

/** Nothing, with a note, for a folder that cannot be read. */
function entriesOf(folder: string, notes: FileIssue[]): Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  } catch (error) {
    // Node replaces bytes of a name that are not UTF-8, so that there is no such folder.
    const why = folder.includes('\uFFFD') ? 'its name is not UTF-8' : messageOf(error);
    notes.push(issueAt(folder, `cannot be read: ${why}`));
    return [];
  }
}

function add(tasks: FoundTask[], task: FoundTask): void {
  if (tasks.push(task) > taskSets.count.tasks)
    throw tooMuch(`has more than ${taskSets.count.tasks} tasks`, task.place);
}

/** A task of Harbor whose `task.toml` was forgotten: it is listed, with the reason. */
function looksLikeTask(names: ReadonlySet<string>, format: TaskFormat | undefined): boolean {
  if (format !== undefined && format !== 'harbor') return false;
  return names.has('instruction.md') && names.has('environment') && names.has('tests');
}

function inRows(file: string): FoundTasks {
  const tasks: FoundTask[] = [];
  for (const { bytes, ...row } of rowsOf(file)) {
    add(tasks, { format: 'swe-bench', place: file, row, ...identified(bytes, { file, line: row.line }) });
  }
  return { tasks, notes: [] };
}

/** The id of a row. One without an id is listed too, under its line. */
function identified(bytes: Buffer, place: RowPlace): Pick<FoundTask, 'id' | 'problem'> {
  try {
    const id = rowId(textOf(bytes, place.file, place.line), place);
    return { id, ...problemOf(id, place.file, place.line) };
  } catch (error) {
    const [problem] = error instanceof BadFile ? error.issues : [];
    if (!problem) throw error;
    return { id: `line ${place.line}`, problem };
  }
}

/** An id becomes the id of a case. */
function problemOf(id: string, place: string, line = 1): Pick<FoundTask, 'problem'> {
  if (Identifier.safeParse(id).success) return {};
  const message = 'has a name that cannot be the id of a case';
  return { problem: { ...issueAt(place, message), line } };
}

/** The second task of one id is a problem, since results are found by the id. */
function withoutDoubles(tasks: readonly FoundTask[]): FoundTask[] {
  const first = new Map<string, FoundTask>();
  return tasks.map((task) => {
    const other = first.get(task.id);
    if (!other) {
      first.set(task.id, task);
      return task;
    }
    const where = other.row ? `${other.place}:${other.row.line}` : other.place;
    const problem = { ...issueAt(task.place, `has the same id as ${where}`), line: task.row?.line ?? 1 };
    return { ...task, problem };
  });
}

function leadsToFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function notFound(message: string): OffsiteError {
  return inputError('NO_TASKS', message, {
    hint: 'A task is a folder with a task.toml or a task.yaml, or a row of a file in JSON Lines.',
  });
}

function tooMuch(message: string, where: string): OffsiteError {
  return inputError('NO_TASKS', `the task set ${message}; the search ended at ${where}`, {
    hint: 'Name a folder further down.',
  });
}

/** Which tasks of a set are meant. */
export interface TaskSelection {
  /** Globs of ids; all tasks if there are none. */
  include?: readonly string[] | undefined;
  /** Globs of ids that are left out. */
  exclude?: readonly string[] | undefined;
  /** At most this many, after the others were applied. */
  limit?: number | undefined;
  /** A whole number below 2^32. The tasks come in an order that depends on it and on their ids alone. */
  seed?: number | undefined;
}

/**
 * The chosen tasks, in the order of the set, or in that of the seed. Throws an `input` error for a glob in
 * `include` that no id matches.
 */
export function selectTasks<Each extends { id: string }>(
  tasks: readonly Each[],
  { include = [], exclude = [], limit, seed }: TaskSelection,
  noun: 'task' | 'case' = 'task',
): Each[] {
  for (const glob of include) {
    const matches = matcher([glob]);
    if (tasks.some(({ id }) => matches(id))) continue;
    const ids = tasks.map(({ id }) => id);
    throw inputError('NO_SUCH_TASK', `no ${noun} matches ${JSON.stringify(glob)}${orNearest(glob, ids)}`, {
      hint: glob.includes(',')
        ? `Separate them by spaces: ${glob.replaceAll(',', ' ')}`
        : 'A * matches any characters of an id.',
    });
  }
  const isIncluded = include.length === 0 ? () => true : matcher(include);
  const isExcluded = exclude.length === 0 ? () => false : matcher(exclude);
  const chosen = tasks.filter(({ id }) => isIncluded(id) && !isExcluded(id));
  return (seed === undefined ? chosen : shuffled(chosen, seed)).slice(0, limit);
}

function matcher(globs: readonly string[]): (id: string) => boolean {
  return picomatch([...globs], { dot: true, flags: 's' });
}

/** By Fisher and Yates, from the order of the ids. */
function shuffled<Each extends { id: string }>(tasks: readonly Each[], seed: number): Each[] {
  const index = randomIndex(seed);
  const order = tasks.toSorted((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
  for (let last = order.length - 1; last > 0; last--) {
    const other = index(last + 1);
    [order[last], order[other]] = [order[other], order[last]] as [Each, Each];
  }
  return order;
}
