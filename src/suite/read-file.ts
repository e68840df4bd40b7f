import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { isAbsolute, join, posix, relative, sep } from 'node:path';
import { inputError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { suiteFiles } from '../bounds/suite.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import { BadFile, decodedText, issueIn } from './file-issues.ts';

/**
 * Which files may be read: all that the user may read, or only those below some folders, with links resolved.
 */
export type Reach =
  | 'anywhere'
  | {
      /**
       * Files and folders. A folder includes everything below it. The first one is the suite's own folder.
       */
      within: readonly string[];
      /** Folders from which nothing is read, even if they are inside `within`. */
      except: readonly string[];
    };

export interface ReadOptions {
  reach?: Reach | undefined;
  maximumBytes?: number;
}

export interface ReadFile {
  content: Buffer;
  isExecutable: boolean;
}

/**
 * Reads a file that a suite or a configuration names. Accepts only a regular file within `reach`. All checks
 * are about the opened file, so a later change of the path has no effect. Throws `FILE_UNREADABLE`, an
 * `input` error.
 */
export function readFile(
  path: string,
  { reach = 'anywhere', maximumBytes = suiteFiles.bytes.file }: ReadOptions = {},
): ReadFile {
  let descriptor: number | undefined;
  try {
    // Opening a device can have an effect, so check the path first. The later checks do not rely on this one.
    refuseSpecial(path, statSync(path));
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = fstatSync(descriptor);
    refuseSpecial(path, stats);
    if (reach !== 'anywhere') refuseOutside(path, realPathOf(path, descriptor, stats), reach);
    if (stats.size > maximumBytes) throw tooLarge(path, maximumBytes);
    const content = readAll(descriptor, path, maximumBytes);
    return { content, isExecutable: (stats.mode & 0o100) !== 0 };
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw unreadable(path, isMissing ? 'it does not exist' : messageOf(error), error);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function refuseSpecial(path: string, stats: Stats): void {
  if (stats.isFile()) return;
  const kinds: [boolean, string][] = [
    [stats.isDirectory(), 'a folder'],
    [stats.isFIFO(), 'a pipe'],
    [stats.isSocket(), 'a socket'],
    [true, 'a device'],
  ];
  const kind = kinds.find(([holds]) => holds)?.[1];
  const remedy = stats.isDirectory() ? 'name a file in it' : 'only regular files can be read';
  throw unreadable(path, `it is ${kind}; ${remedy}`);
}

/**
 * Reads a whole file. Does not trust the file's size: the file may grow, or the kernel may generate it while
 * it is read.
 */
function readAll(descriptor: number, path: string, maximumBytes: number): Buffer {
  const parts: Buffer[] = [];
  for (let total = 0; ; ) {
    const part = Buffer.alloc(Math.min(64 * 1024, maximumBytes + 1 - total));
    const length = readSync(descriptor, part);
    if (length === 0) return Buffer.concat(parts);
    total += length;
    if (total > maximumBytes) throw tooLarge(path, maximumBytes);
    parts.push(part.subarray(0, length));
  }
}

/** The path of the opened file, without links. */
function realPathOf(path: string, descriptor: number, opened: Stats): string {
  if (opened.nlink === 0) throw unreadable(path, 'it was removed while it was read');
  try {
    // The kernel's own answer for this descriptor.
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // This system has no /proc. A program that swaps folders at the right moments can defeat these two
    // checks.
    const real = realpathSync(path);
    const { dev, ino } = statSync(real);
    if (dev === opened.dev && ino === opened.ino && realpathSync(path) === real) return real;
    throw unreadable(path, 'it was replaced while it was read');
  }
}

/** The path of a folder without links. Throws `FILE_UNREADABLE` if there is none within `reach`. */
export function reachedFolder(path: string, reach: Exclude<Reach, 'anywhere'>): string {
  let real: string;
  try {
    real = realpathSync(path);
  } catch (error) {
    throw unreadable(path, messageOf(error), error);
  }
  if (!statSync(real).isDirectory()) throw unreadable(path, 'it is not a folder');
  refuseOutside(path, real, reach);
  return real;
}

function refuseOutside(path: string, real: string, reach: Exclude<Reach, 'anywhere'>): void {
  const inside = requireWithin(path, real, reach);
  // Git tracks nothing with this name. The folder belongs to this clone, may contain tokens, and did not come
  // with the suite.
  if (inside.every((path) => path.split(sep).some((name) => name.toLowerCase() === '.git')))
    throw unreadable(path, `it is in git's own folder, which is not part of the suite; ${permit}`);
}

const permit = 'permit it with --allow-outside, or allowOutside in offsite.yaml';

/**
 * Throws `FILE_UNREADABLE` for a path without links that is not within `reach`. Returns its relative paths
 * from the roots that contain it.
 */
export function requireWithin(
  path: string,
  real: string,
  { within, except }: Exclude<Reach, 'anywhere'>,
): string[] {
  const [own = '', ...allowed] = within;
  const forbidden = realPaths(except).find((root) => below(root, real) !== undefined);
  if (forbidden !== undefined)
    throw unreadable(path, `it is in ${forbidden}, where Offsite keeps its own files`);
  const inside = realPaths([own, ...allowed]).flatMap((root) => below(root, real) ?? []);
  if (inside.length === 0) {
    const where = real === path ? '' : `${real}, `;
    const gone = allowed.filter((root) => realPaths([root]).length === 0);
    const noted = gone.length === 0 ? '' : `; what is permitted cannot be found: ${gone.join(', ')}`;
    throw unreadable(path, `it is ${where}outside the suite's folder ${own}; ${permit}${noted}`);
  }
  return inside;
}

/** Those of some paths that exist, without links. */
export function realPaths(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    // An error costs a hundred times as much as a look, and most of the paths may be missing.
    if (!existsSync(path)) return [];
    try {
      return [realpathSync(path)];
    } catch {
      return [];
    }
  });
}

/** The path from a folder to a file in it. Undefined if the file is elsewhere. Empty for the file itself. */
function below(root: string, real: string): string | undefined {
  const way = relative(root, real);
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way) ? undefined : way;
}

function tooLarge(path: string, maximumBytes: number): OffsiteError {
  return unreadable(path, `it is larger than the limit of ${maximumBytes / 1024 ** 2} MiB`);
}

function unreadable(path: string, why: string, cause?: unknown): OffsiteError {
  return inputError('FILE_UNREADABLE', `cannot read ${path}: ${why}`, {
    hint: 'Check the path. In a file it is relative to that file, otherwise to the folder in which the command runs.',
    cause,
  });
}

interface FileReaderOptions {
  reach: Reach;
  /** Keys that no file may contain, because the service or a sandbox would get them. */
  keys?: KnownKeys | undefined;
}

/**
 * Reads the files of one suite or profile, up to a limit on all of them together. Throws `FILE_UNREADABLE`
 * and {@link BadFile}.
 */
export class FileReader {
  readonly #options: FileReaderOptions;
  readonly #read = { bytes: 0, files: 0 };

  constructor(options: FileReaderOptions) {
    this.#options = options;
  }

  file(path: string): ReadFile {
    const read = readFile(path, { reach: this.#options.reach });
    this.#read.bytes += read.content.length;
    this.#read.files++;
    if (this.#read.bytes > suiteFiles.bytes.all)
      throw tooMuch(
        `with ${path}, its files are larger than ${suiteFiles.bytes.all / 1024 ** 2} MiB together`,
      );
    const held = this.#options.keys?.find(read.content);
    if (held) throw new BadFile([issueIn(path, heldKey(held.name), held)]);
    return read;
  }

  text(path: string): string {
    return decodedText(path, this.file(path).content);
  }

  /** Reads every file of a folder. `target` replaces the folder in their paths. Links are followed. */
  folder(folder: string, target: string, above: readonly string[] = []): (ReadFile & { path: string })[] {
    const { dev, ino } = statSync(folder);
    const identity = `${dev}:${ino}`;
    if (above.includes(identity)) throw tooMuch(`${folder} leads in a circle to a folder above it`);
    if (above.length > suiteFiles.count.depth)
      throw tooMuch(`${folder} is more than ${suiteFiles.count.depth} folders deep`);
    return readdirSync(folder)
      .toSorted()
      .flatMap((name) => {
        const path = join(folder, name);
        const below = posix.join(target, name);
        if (statSync(path).isDirectory()) return this.folder(path, below, [...above, identity]);
        if (this.#read.files >= suiteFiles.count.files)
          throw tooMuch(`it has more than ${suiteFiles.count.files} files`);
        return [{ path: below, ...this.file(path) }];
      });
  }
}

export function heldKey(name: string): string {
  return `holds the key in ${name}, which neither the service nor a sandbox may see`;
}

function tooMuch(message: string): OffsiteError {
  return inputError('FILE_UNREADABLE', message);
}
