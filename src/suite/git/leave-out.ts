import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { gitSources } from '../../bounds/suite.ts';
import { namedFiles } from '../answers.ts';
import { repositoryAbove } from '../find-config.ts';
import type { SuiteFile } from '../suite-file.ts';
import { branch, type FetchedCommit, type FetchParts, finishRepository } from './fetch-commit.ts';
import { runGit } from './run-git.ts';

/** What a suite keeps from agents in its own repository. Paths are relative to the repository, with `/`. */
export interface OwnPaths {
  /** The folder of the repository, without links. */
  repository: string;
  suiteFile: string;
  /** The suite's folder, unless it is the whole repository, and the files that the suite names. */
  paths: string[];
}

/** Undefined if the suite is in no repository. */
export function ownPathsOf(file: string, suite: SuiteFile): OwnPaths | undefined {
  const real = realpathSync(file);
  const folder = dirname(real);
  const repository = repositoryAbove(folder);
  if (repository === undefined) return undefined;
  const named = namedFiles(suite).map((name) => resolve(folder, name));
  const all = [folder, real, ...named, ...named.flatMap(withoutLinks)].map((path) =>
    relative(repository, path).split(sep).join('/'),
  );
  const inside = all.filter((path) => path !== '' && path !== '..' && !path.startsWith('../'));
  return { repository, suiteFile: relative(repository, real).split(sep).join('/'), paths: outermost(inside) };
}

/** Nothing for a path that does not exist, which is reported when the suite is read. */
function withoutLinks(path: string): string[] {
  return existsSync(path) ? [realpathSync(path)] : [];
}

function outermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)));
}

export interface LeftOutFiles {
  /** The suite's own files and folders that the commit has. */
  paths: readonly string[];
  /** Globs of the suite's author. */
  globs: readonly string[];
}

/**
 * A repository with the same commit without some files, and without a history. Its id depends only on what it
 * holds. Resolves with the paths and globs that were left out; if the commit has none of them, with the
 * repository as it is. Throws `GIT_FAILED` for a glob of nothing: a mistyped one would give the files away.
 */
export async function withoutPaths(
  fetched: FetchedCommit,
  { paths, globs }: LeftOutFiles,
  { folder, env, signal }: Pick<FetchParts, 'folder' | 'env' | 'signal'>,
): Promise<FetchedCommit & { leftOut: string[] }> {
  const here = { env, signal, reach: 'nothing' as const, timeoutMs: gitSources.time.read };
  for (const glob of globs) {
    const args = [`--git-dir=${fetched.repository}`, 'ls-files', '-z', '--cached', '--', globSpec(glob)];
    const set = { GIT_INDEX_FILE: join(fetched.repository, 'index') };
    if ((await runGit({ ...here, args, set })).length === 0) throw matchesNothing(glob, fetched.commit);
  }
  const leftOut = [...paths, ...globs];
  if (leftOut.length === 0) return { ...fetched, leftOut };
  const specs = [...paths.map((path) => `:(top,literal)${path}`), ...globs.map(globSpec)];
  const name = createHash('sha256')
    .update([fetched.repository, ...specs].join('\0'))
    .digest('hex');
  const repository = join(folder, name.slice(0, 40));
  if (!existsSync(repository)) await rebuild(fetched, specs, repository, { folder, env, signal });
  const now = new Date();
  utimesSync(repository, now, now);
  const args = [`--git-dir=${repository}`, 'rev-parse', '--verify', branch];
  const commit = (await runGit({ ...here, args })).toString('utf8').trim();
  return { commit, repository, leftOut };
}

/** As git takes a glob. It also matches all that is below a folder of that name. */
function globSpec(glob: string): string {
  return `:(top,glob)${glob}`;
}

async function rebuild(
  fetched: FetchedCommit,
  specs: readonly string[],
  repository: string,
  { folder, env, signal }: Pick<FetchParts, 'folder' | 'env' | 'signal'>,
): Promise<void> {
  const fresh = mkdtempSync(join(folder, 'rebuilding-'));
  const run = async (...args: string[]) => {
    const call = { args: [`--git-dir=${fresh}`, `--work-tree=${fresh}`, ...args], env, signal };
    const set = { GIT_INDEX_FILE: join(fresh, 'index') };
    return runGit({ ...call, set, reach: 'nothing', timeoutMs: gitSources.time.read });
  };
  try {
    const format = fetched.commit.length === 64 ? ['--object-format=sha256'] : [];
    const init = ['init', '--quiet', '--bare', '--template=', ...format, '--', fresh];
    await runGit({ args: init, env, signal, reach: 'nothing', timeoutMs: gitSources.time.read });
    mkdirSync(join(fresh, 'objects', 'info'), { recursive: true });
    const borrowed = join(fresh, 'objects', 'info', 'alternates');
    writeFileSync(borrowed, `${join(fetched.repository, 'objects')}\n`);
    await run('read-tree', fetched.commit);
    const list = join(fresh, 'left-out');
    writeFileSync(list, specs.map((spec) => `${spec}\0`).join(''));
    const from = [`--pathspec-from-file=${list}`, '--pathspec-file-nul'];
    await run('rm', '-r', '--quiet', '--cached', '--force', ...from);
    const tree = (await run('write-tree')).toString('utf8').trim();
    writeFileSync(list, rootCommit(await run('cat-file', 'commit', fetched.commit), tree));
    const commit = (await run('hash-object', '-t', 'commit', '-w', '--', list)).toString('utf8').trim();
    rmSync(list);
    await finishRepository(fresh, commit, { env, signal });
    // The pack has all objects of the commit now.
    rmSync(borrowed);
    // Another process may have made the same one.
    await rename(fresh, repository).catch((error: unknown) => {
      if (!existsSync(repository)) throw error;
    });
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** The same author, dates and message, with another tree. */
function rootCommit(commit: Buffer, tree: string): Buffer {
  const end = commit.indexOf('\n\n');
  const kept = commit
    .subarray(0, end)
    .toString('latin1')
    .split('\n')
    .filter((line) => /^(author|committer|encoding) /.test(line));
  return Buffer.concat([Buffer.from([`tree ${tree}`, ...kept].join('\n'), 'latin1'), commit.subarray(end)]);
}

function matchesNothing(glob: string, commit: string): OffsiteError {
  return inputError('LEAVE_OUT_UNMATCHED', `"${glob}" matches no file of commit ${commit}`);
}
