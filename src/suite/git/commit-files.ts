import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { gitSources } from '../../bounds/suite.ts';
import type { PlacedFile } from '../environment.ts';
import type { PlannedSource } from './git-source.ts';
import { gitIn, type KeptRepository } from './kept-commits.ts';
import { failed, gitCommand } from './run-git.ts';

/** A file, folder, link or submodule of a commit, which is never checked out on this machine. */
export interface CommittedEntry {
  /** Relative to the repository, with `/`. */
  path: string;
  kind: 'file' | 'executable' | 'link' | 'folder' | 'submodule';
  /** The id of its object. */
  object: string;
  /** Bytes of content. */
  size: number;
}

const kinds: Readonly<Record<string, CommittedEntry['kind']>> = {
  '100644': 'file',
  '100664': 'file',
  '100755': 'executable',
  '120000': 'link',
  '040000': 'folder',
  '160000': 'submodule',
};

/**
 * Lists a commit, folders before what is in them. Throws an `input` error for a commit that has too much, or
 * names that no honest repository has.
 */
export async function committedEntries(commit: string, kept: KeptRepository): Promise<CommittedEntry[]> {
  const listed = await gitIn(kept, ['ls-tree', '-r', '-t', '-z', '--long', '--full-tree', commit]);
  const entries = decoded(listed).split('\0').slice(0, -1).map(entryOf);
  if (entries.length > gitSources.count.files)
    throw failed(`the commit has more than ${gitSources.count.files} files and folders`);
  const folders = new Set(['']);
  const seen = new Set<string>();
  let bytes = 0;
  for (const { path, kind, size } of entries) {
    const above = path.split('/').slice(0, -1).join('/');
    if (seen.has(path) || !folders.has(above) || isHostile(path))
      throw failed(`${quoted(path)} is no honest name`);
    seen.add(path);
    if (kind === 'folder') folders.add(path);
    bytes += size;
    if (size > gitSources.bytes.file || bytes > gitSources.bytes.all)
      throw failed(
        `the files of the commit are too large: at most ${mebibytes(gitSources.bytes.file)} each and ` +
          `${mebibytes(gitSources.bytes.all)} together, and ${quoted(path)} exceeds that`,
      );
  }
  return entries;
}

function entryOf(line: string): CommittedEntry {
  const [, mode = '', object = '', size = '', path = ''] =
    /^(\d+) \w+ ([\da-f]+) +(\d+|-)\t(.+)$/s.exec(line) ?? [];
  const kind = kinds[mode];
  if (kind === undefined) throw failed(`the commit has an entry of the unknown mode ${quoted(mode)}`);
  return { path, kind, object, size: size === '-' ? 0 : Number(size) };
}

/** Names that git never writes, which a tree that was made by hand can have. */
function isHostile(path: string): boolean {
  return path.split('/').some((name) => ['', '.', '..', '.git'].includes(name.toLowerCase()));
}

function decoded(listed: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(listed);
  } catch {
    throw failed('the commit has a name that is not UTF-8');
  }
}

/** The contents of entries that are no folders, in order, one in memory at a time. */
export async function* contentsOf(
  entries: readonly Pick<CommittedEntry, 'object' | 'size'>[],
  { repository, env, signal }: KeptRepository,
): AsyncGenerator<Buffer> {
  if (entries.length === 0) return;
  // An empty format: before each content is only the end of a line.
  const args = [`--git-dir=${repository}`, 'cat-file', '--batch='];
  const { command, args: all, env: given } = gitCommand({ args, env, reach: 'nothing' });
  const child = spawn(command, all, { env: given, stdio: ['pipe', 'pipe', 'ignore'], signal });
  const ended = once(child, 'close');
  // The loop that reads the output throws for an abort, or for an early end of git.
  ended.catch(() => undefined);
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  const pieces: AsyncIterator<Buffer> = child.stdout[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  const exactly = async (size: number): Promise<Buffer> => {
    const parts: Buffer[] = [rest];
    for (let has = rest.length; has < size; has += parts.at(-1)?.length ?? 0) {
      const { done, value } = await pieces.next();
      if (done) throw failed('git ended before it gave all files of the commit');
      parts.push(value);
    }
    const all = Buffer.concat(parts);
    rest = all.subarray(size);
    return all.subarray(0, size);
  };
  try {
    for (const { object, size } of entries) {
      child.stdin.write(`${object}\n`);
      const head = await exactly(1);
      if (head[0] !== newline)
        throw failed(`the kept repository ${repository} is damaged: it lacks ${object}`);
      const content = await exactly(size + 1);
      yield content.subarray(0, -1);
    }
    child.stdin.end();
    await ended;
  } finally {
    child.kill('SIGKILL');
  }
}

const newline = 0x0a;

const quoted = (text: string) => JSON.stringify(text);
const mebibytes = (bytes: number) => `${bytes / 1024 ** 2} MiB`;

/**
 * A repository with a workspace and without a remote: the sandbox does not learn where the source is from.
 */
const config = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
`;

/**
 * What a source puts into the workspace: the files of its commit as they are in the repository, without any
 * filter, and `.git`. Paths are relative. One file is in memory at a time. Throws an `input` error if the
 * commit is no longer kept.
 */
export async function* sourceEntries(
  source: PlannedSource,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): AsyncGenerator<PlacedFile> {
  const { repository, commit, rebuilt = commit, history, url } = source;
  if (!existsSync(repository))
    throw failed(`commit ${commit} of ${url} is no longer in ${repository}: run the suite again`);
  const reading = { repository, env, signal };
  const entries = await committedEntries(rebuilt, reading);
  // Git's own folders first, so that no name of the commit can be in its place.
  if (history === 'commit') yield* gitFolder(repository);
  const contents = contentsOf(
    entries.filter(({ kind }) => kind !== 'folder' && kind !== 'submodule'),
    reading,
  );
  for (const { path, kind } of entries) {
    if (kind === 'folder' || kind === 'submodule') {
      yield { path, folder: true, mode: 0o755 };
      continue;
    }
    const { value: content } = await contents.next();
    if (!content) throw failed(`the kept repository ${repository} is damaged: it lacks ${path}`);
    if (kind === 'link') yield { path, linkTarget: content.toString('utf8') };
    else yield { path, content, mode: kind === 'executable' ? 0o755 : 0o644 };
  }
  await contents.next();
}

function* gitFolder(repository: string): Generator<PlacedFile> {
  yield { path: '.git', folder: true, mode: 0o755 };
  const entries = readdirSync(repository, { withFileTypes: true, recursive: true });
  for (const entry of entries.toSorted((one, other) => (pathOf(one) < pathOf(other) ? -1 : 1))) {
    const path = `.git/${relative(repository, pathOf(entry))}`;
    if (path === '.git/config') yield { path, content: Buffer.from(config), mode: 0o644 };
    else if (entry.isDirectory()) yield { path, folder: true, mode: 0o755 };
    else if (entry.isFile()) yield { path, content: readFileSync(pathOf(entry)), mode: 0o644 };
  }
}

function pathOf({ parentPath, name }: { parentPath: string; name: string }): string {
  return join(parentPath, name);
}
