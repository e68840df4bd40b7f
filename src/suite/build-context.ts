import { createHash, type Hash } from 'node:crypto';
import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import dockerignore from '@balena/dockerignore';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { buildContexts } from '../bounds/suite.ts';
import { realPaths } from './read-file.ts';

/** What a build may read: a folder without what its `.dockerignore` leaves out. */
export interface BuildContext {
  /** Absolute. */
  folder: string;
  /** The patterns of its `.dockerignore`, or nothing. */
  ignore: string;
}

export interface ContextEntry {
  /** Relative to the context, with `/`. */
  path: string;
  type: 'file' | 'folder' | 'symlink';
  /** Permission bits. */
  mode: number;
  /** Bytes of content. */
  size: number;
  linkTarget?: string;
  modifiedAt: Date;
}

/** Left out of every context: it belongs to a clone, and may hold tokens. */
export const neverInContexts = '**/.git';

/**
 * Lists what a context holds, folders before what is in them. Links are kept and never followed. Throws
 * `CONTEXT_REFUSED`, an `input` error, if it holds too much, or something that is no file, folder or link.
 *
 * @param except folders that no build may read
 */
export function contextEntries(
  { folder, ignore }: BuildContext,
  except: readonly string[] = [],
): ContextEntry[] {
  const patterns = dockerignore.default({ ignorecase: false }).add(ignore).add(neverInContexts);
  const mayReturn = ignore.split('\n').some((line) => line.trimStart().startsWith('!'));
  const forbidden = new Set(realPaths(except));
  const entries: ContextEntry[] = [];
  let bytes = 0;
  const walk = (below: string) => {
    const absolute = join(folder, below);
    if (forbidden.has(realpathSync(absolute)))
      throw refused(folder, `it holds ${absolute}, where Offsite keeps its own files`);
    for (const name of readdirSync(absolute).toSorted()) {
      const path = below === '' ? name : `${below}/${name}`;
      const isIgnored = patterns.ignores(path);
      const stats = lstatSync(join(folder, path));
      if (stats.isDirectory()) {
        if (name === '.git' || (isIgnored && !mayReturn)) continue;
        if (!isIgnored) entries.push(entryOf(path, 'folder', stats));
        walk(path);
        continue;
      }
      // The builders leave sockets out.
      if (isIgnored || stats.isSocket()) continue;
      if (entries.length >= buildContexts.count.entries)
        throw refused(folder, `it has more than ${buildContexts.count.entries} files and folders`);
      if (stats.isSymbolicLink()) {
        const linkTarget = readlinkSync(join(folder, path));
        entries.push({ ...entryOf(path, 'symlink', stats), linkTarget });
      } else if (stats.isFile()) {
        bytes += stats.size;
        if (bytes > buildContexts.bytes.all)
          throw refused(folder, `its files have more than ${buildContexts.bytes.all / 1024 ** 2} MiB`);
        entries.push({ ...entryOf(path, 'file', stats), size: stats.size });
      } else throw refused(folder, `${path} is neither a file, a folder nor a link`);
    }
  };
  walk('');
  return entries;
}

/**
 * The hash of what a context holds: paths, modes, contents and links.
 *
 * @param see gets each piece of each file
 */
export function contextHash(
  folder: string,
  entries: readonly ContextEntry[],
  see: (path: string, piece: Buffer) => void = () => undefined,
): string {
  const hash = createHash('sha256');
  for (const { path, type, mode, size, linkTarget } of entries) {
    hash.update(JSON.stringify([path, type, type === 'symlink' ? 0 : mode, size, linkTarget]));
    if (type === 'file') addContent(hash, join(folder, path), (piece) => see(path, piece));
  }
  return hash.digest('hex');
}

function addContent(hash: Hash, file: string, see: (piece: Buffer) => void): void {
  const piece = Buffer.allocUnsafe(buildContexts.bytes.piece);
  const descriptor = openSync(file, 'r');
  try {
    for (;;) {
      const length = readSync(descriptor, piece);
      if (length === 0) return;
      hash.update(piece.subarray(0, length));
      see(piece.subarray(0, length));
    }
  } finally {
    closeSync(descriptor);
  }
}

function entryOf(
  path: string,
  type: ContextEntry['type'],
  { mode, mtime }: { mode: number; mtime: Date },
): ContextEntry {
  return { path, type, mode: mode & 0o7777, size: 0, modifiedAt: mtime };
}

function refused(folder: string, why: string): OffsiteError {
  return inputError('CONTEXT_REFUSED', `the build context ${folder} is refused: ${why}`, {
    hint: 'Name what the build does not need in .dockerignore.',
  });
}
