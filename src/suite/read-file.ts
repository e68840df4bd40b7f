import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { isAbsolute, relative, sep } from 'node:path';
import { suiteFiles } from '../bounds/suite.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';

/** Which files may be read: any that the user may, or those below folders, links resolved. */
export type Reach =
  | 'anywhere'
  | {
      /** Files, or folders with all that is below them. The first is the suite's own folder. */
      within: readonly string[];
      /** Folders that are never read from, wherever they are. */
      except: readonly string[];
    };

export interface ReadOptions {
  reach?: Reach;
  maximumBytes?: number;
}

export interface ReadFile {
  content: Buffer;
  isExecutable: boolean;
}

/**
 * Reads a file that a suite or a configuration names, and nothing but a regular file within `reach`. What is
 * decided is decided of the file that was opened, whatever its path leads to by then. Throws
 * `FILE_UNREADABLE`, an input error.
 */
export function readFile(
  path: string,
  { reach = 'anywhere', maximumBytes = suiteFiles.bytes.file }: ReadOptions = {},
): ReadFile {
  let descriptor: number | undefined;
  try {
    // Opening a device can do something to it; so a look at the path first, which nothing else depends on.
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
    throw unreadable(path, messageOf(error), error);
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
  throw unreadable(path, `it is ${kind}, and only regular files are read`);
}

/** The size that a file says it has may be wrong: it grows, or is made by the kernel as it is read. */
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

/** Where the opened file is, without links. */
function realPathOf(path: string, descriptor: number, opened: Stats): string {
  if (opened.nlink === 0) throw unreadable(path, 'it was removed as it was read');
  try {
    // The kernel's own answer for this very descriptor.
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    // A system without it. Whoever can swap folders in between could be faster than these two looks.
    const real = realpathSync(path);
    const { dev, ino } = statSync(real);
    if (dev === opened.dev && ino === opened.ino && realpathSync(path) === real) return real;
    throw unreadable(path, 'it was replaced as it was read');
  }
}

function refuseOutside(path: string, real: string, { within, except }: Exclude<Reach, 'anywhere'>): void {
  const [own = '', ...allowed] = within;
  const forbidden = realRoots(except).find((root) => below(root, real) !== undefined);
  if (forbidden !== undefined) throw unreadable(path, `it is in ${forbidden}, where Offsite keeps its own`);
  const places = realRoots([own, ...allowed]).flatMap((root) => below(root, real) ?? []);
  const permit = 'the command line permits others by --allow-outside';
  if (places.length === 0)
    throw unreadable(path, `it is ${real}, outside of the suite's folder ${own}; ${permit}`);
  // Git tracks nothing by that name: it is the clone's own, tokens among it, and came with no suite.
  if (places.every((place) => place.split(sep).some((name) => name.toLowerCase() === '.git')))
    throw unreadable(path, `it is the repository's own record, not the suite's; ${permit}`);
}

/** Those that are there, without links. */
function realRoots(roots: readonly string[]): string[] {
  return roots.flatMap((root) => {
    try {
      return [realpathSync(root)];
    } catch {
      return []; // nothing is below what is not there
    }
  });
}

/**
 * The way from a folder to a file in it; undefined where the file is elsewhere. Empty for the file itself.
 */
function below(root: string, real: string): string | undefined {
  const way = relative(root, real);
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way) ? undefined : way;
}

function tooLarge(path: string, maximumBytes: number): OffsiteError {
  return unreadable(path, `it has more than ${maximumBytes / 1024 ** 2} MiB, the most that is read`);
}

function unreadable(path: string, why: string, cause?: unknown): OffsiteError {
  return new OffsiteError(`cannot read ${path}: ${why}`, {
    code: 'FILE_UNREADABLE',
    kind: 'input',
    hint: 'Check the path; it is taken relative to the folder that the command runs in.',
    cause,
  });
}
