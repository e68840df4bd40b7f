import { type Dirent, readdirSync, realpathSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import ignore from 'ignore';
import { taskDigests } from '../bounds/tasks.ts';
import { BadFile } from '../suite/file-issues.ts';
import { FileReader, type ReadFile } from '../suite/read-file.ts';
import type { Task } from './task.ts';
import { issueAt, TaskFolder } from './task-folder.ts';

/**
 * The files below a folder of a task, as paths from `from` with slashes, sorted. A link is a file, and must
 * stay in the task. Throws {@link BadFile} for one that leads out, and for too many files.
 *
 * @param ignored patterns as in a `.gitignore` of the task's folder
 */
export function filesBelow(task: TaskFolder, from: string, ignored: readonly string[] = []): string[] {
  const filter = ignore().add([...ignored]);
  const found: string[] = [];
  let matching = 0;
  const isIgnored = (name: string) => {
    if (ignored.length === 0) return false;
    const begun = performance.now();
    const is = filter.ignores(name);
    matching += performance.now() - begun;
    if (matching > taskDigests.time.ignored)
      throw new BadFile([issueAt(from, 'takes too long to compare with the patterns of ignored files')]);
    return is;
  };
  const look = (folder: string, depth: number) => {
    if (depth > taskDigests.count.depth)
      throw new BadFile([issueAt(folder, `is more than ${taskDigests.count.depth} folders deep`)]);
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      const name = slashed(task.path, path);
      if (isIgnored(entry.isDirectory() ? `${name}/` : name)) continue;
      if (entry.isDirectory()) look(path, depth + 1);
      else if (isFile(task, path, entry)) found.push(slashed(from, path));
      if (found.length > taskDigests.count.files)
        throw new BadFile([issueAt(folder, `has more than ${taskDigests.count.files} files`)]);
    }
  };
  look(from, 1);
  return found.toSorted();
}

function slashed(from: string, to: string): string {
  return relative(from, to).split(sep).join('/');
}

/** Pipes, sockets and devices are not files. */
function isFile(task: TaskFolder, path: string, entry: Dirent): boolean {
  if (!entry.isSymbolicLink()) return entry.isFile();
  if (!task.contains(targetOf(path))) throw task.outside(path);
  return true;
}

function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    throw new BadFile([issueAt(path, 'is a link that leads nowhere')]);
  }
}

/** The patterns of a file such as `.gitignore`; none if there is no such file. Throws {@link BadFile}. */
export function ignorePatterns(task: TaskFolder, name: string): string[] {
  if (!task.isFile(name)) return [];
  const patterns: string[] = [];
  for (const [index, line] of task.text(name).split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    patterns.push(line);
    const wildcards = line.split(/\*+/).length - 1;
    const problem =
      patterns.length > taskDigests.count.patterns
        ? `has more than ${taskDigests.count.patterns} patterns`
        : `has more than ${taskDigests.count.wildcards} wildcards in a pattern`;
    if (patterns.length > taskDigests.count.patterns || wildcards > taskDigests.count.wildcards)
      throw new BadFile([{ ...issueAt(task.at(name), problem), line: index + 1 }]);
  }
  return patterns;
}

/** Reads what the case of a task names, and nothing that a link of the task leads out to. */
export class TaskFiles extends FileReader {
  readonly #task: TaskFolder;
  readonly #named: Task['named'];

  constructor(place: string, named: Task['named'], options: ConstructorParameters<typeof FileReader>[0]) {
    super(options);
    this.#task = new TaskFolder(place);
    this.#named = named;
  }

  override file(path: string): ReadFile {
    const text = this.#named.get(path);
    return typeof text === 'string' ? { content: Buffer.from(text), isExecutable: false } : super.file(path);
  }

  override folder(path: string, target: string): (ReadFile & { path: string })[] {
    const folders = this.#named.get(path);
    const placed = new Map<string, ReadFile & { path: string }>();
    for (const { from, ignored } of Array.isArray(folders) ? folders : [])
      for (const name of filesBelow(this.#task, from, ignored)) {
        const at = posix.join(target, name);
        placed.set(at, { path: at, ...super.file(join(from, name)) });
      }
    return [...placed.values()];
  }
}
