import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../base/byte-store.ts';
import { infrastructureError, inputError, messageOf } from '../../base/offsite-error.ts';
import { gitSources } from '../../bounds/suite.ts';
import type { Repository } from './git-source.ts';
import { failed, type GitCall, kindOfFailure, runGit } from './run-git.ts';

export interface FetchParts extends Pick<KeptRepository, 'env' | 'signal'> {
  /** Keeps the commits that were fetched. */
  folder: string;
  /** Whether git may use the user's settings and credentials. */
  withCredentials: boolean;
  onProgress?: ((line: string) => void) | undefined;
}

export interface FetchedCommit {
  commit: string;
  /** The path of a bare repository with this commit, which the branch `main` names, and no other. */
  repository: string;
}

const fetched = 'refs/offsite/source';

/**
 * Fetches one commit of a repository, or finds it among those that are kept. Throws an `input` error with
 * what git said, and what to do about a shallow clone.
 */
export async function fetchCommit(
  source: Repository,
  ref: string | undefined,
  parts: FetchParts,
): Promise<FetchedCommit> {
  try {
    return await fetchOrFind(source, ref, parts);
  } catch (error) {
    throw source.kind === 'local' ? await namingShallowClone(error, source.path, parts) : error;
  }
}

async function fetchOrFind(
  source: Repository,
  ref: string | undefined,
  parts: FetchParts,
): Promise<FetchedCommit> {
  const address = source.kind === 'local' ? source.path : source.url;
  const reach = source.kind === 'remote' && !parts.withCredentials ? 'stranger' : source.kind;
  const { folder, env, signal } = parts;
  const isId = ref !== undefined && /^([\da-f]{40}|[\da-f]{64})$/i.test(ref);
  const wanted = isId
    ? { name: ref.toLowerCase(), commit: ref.toLowerCase() }
    : await found(ref, address, { env, reach, signal });
  // Who may not use the credentials must not get what was fetched with them either.
  const keptUnder = reach === 'stranger' ? `${reach} ${address}` : address;
  let commit = wanted.commit;
  const place = () => keptAt(folder, keptUnder, commit);
  if (isKept(place())) return { commit, repository: place() };
  makeKeptFolder(folder);
  removeUnused(folder);
  await keep(folder, parts, async (fresh) => {
    commit = await fetchInto(fresh, { address, reach, name: wanted.name }, parts).catch((error: unknown) => {
      if (!isId || kindOfFailure(error) !== 'GIT_REF_MISSING') throw error;
      throw failed(`the repository has no commit ${commit}: ${messageOf(error)}`, 'GIT_REF_MISSING');
    });
    return place();
  });
  return { commit, repository: place() };
}

/** How long a commit that no suite names is kept, in milliseconds. */
const keptFor = 90 * 24 * 3_600_000;

function removeUnused(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && found.mtimeMs < Date.now() - keptFor) rmSync(path, { recursive: true, force: true });
  }
}

type GitAccess = Pick<GitCall, 'env' | 'reach' | 'signal'>;

/** The full name of a ref, and the commit that it leads to. */
async function found(
  ref: string | undefined,
  address: string,
  access: GitAccess,
): Promise<{ name: string; commit: string }> {
  const names = ref === undefined ? ['HEAD'] : [ref, `refs/${ref}`, `refs/tags/${ref}`, `refs/heads/${ref}`];
  const patterns = names.flatMap((name) => [name, `${name}^{}`]);
  const args = ['ls-remote', '--quiet', '--', address, ...patterns];
  const listed = await runGit({ ...access, args, timeoutMs: gitSources.time.asked });
  const ids = new Map(
    listed
      .toString('utf8')
      .split('\n')
      .map((line) => line.split('\t'))
      .map(([id = '', name = '']) => [name, id]),
  );
  for (const name of names) {
    const commit = ids.get(`${name}^{}`) ?? ids.get(name);
    if (commit !== undefined) return { name, commit };
  }
  throw failed(
    ref === undefined
      ? 'the repository has no commit at its HEAD'
      : `the repository has no branch and no tag ${ref}; a commit needs its whole id`,
    'GIT_REF_MISSING',
  );
}

async function fetchInto(
  fresh: KeptRepository,
  { address, reach, name }: { address: string; reach: GitCall['reach']; name: string },
  { env, signal, onProgress }: FetchParts,
): Promise<string> {
  await makeRepository(fresh, name);
  using watch = watched(fresh.repository, signal);
  const options = [
    '--progress',
    '--depth=1',
    '--no-tags',
    '--no-write-fetch-head',
    '--no-recurse-submodules',
  ];
  const from = ['--', address, `+${name}:${fetched}`];
  await runGit({
    env,
    reach,
    signal: watch.signal,
    timeoutMs: gitSources.time.fetched,
    args: [`--git-dir=${fresh.repository}`, 'fetch', ...options, ...from],
    ...(onProgress && { onProgress }),
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw watch.signal.aborted ? watch.signal.reason : error;
  });
  const commit = await lineIn(fresh, ['rev-parse', '--verify', `${fetched}^{commit}`]);
  await gitIn(fresh, ['update-ref', '-d', fetched]);
  await finishRepository(fresh, commit);
  return commit;
}

/** Aborts once a folder has more than may be fetched. */
function watched(folder: string, signal: AbortSignal): { signal: AbortSignal } & Disposable {
  const tooMuch = new AbortController();
  const timer = setInterval(() => {
    if (bytesBelow(folder) <= gitSources.bytes.fetched) return;
    const limit = `${gitSources.bytes.fetched / 1024 ** 2} MiB`;
    tooMuch.abort(failed(`the repository sends more than ${limit}`));
  }, gitSources.time.looked);
  return {
    signal: AbortSignal.any([signal, tooMuch.signal]),
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Git renames and removes files meanwhile. A renamed file that is missed is counted the next time. */
function bytesBelow(folder: string): number {
  const objects = join(folder, 'objects');
  const folders = [...namesIn(objects).map((name) => join(objects, name))];
  return folders
    .flatMap((below) => [below, ...namesIn(below).map((name) => join(below, name))])
    .reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // It is a file, or is gone.
  }
}

const howToDeepen =
  'it is a shallow clone, without its whole history; fetch it with git fetch --unshallow ' +
  '(GitHub Actions: fetch-depth: 0 of actions/checkout; GitLab: GIT_DEPTH: "0")';

/** Adds to a failure of git what to do, if a repository of this machine is a shallow clone. */
async function namingShallowClone(
  error: unknown,
  path: string,
  { env, signal }: Pick<GitCall, 'env' | 'signal'>,
): Promise<unknown> {
  const failure = kindOfFailure(error);
  if (failure === undefined || signal.aborted) return error;
  const args = ['-C', path, 'rev-parse', '--is-shallow-repository'];
  const asking = { env, signal, reach: 'local' as const, timeoutMs: gitSources.time.asked };
  const answer = await runGit({ ...asking, args }).catch(() => undefined);
  if (answer?.toString('utf8').trim() !== 'true') return error;
  return failed(`${messageOf(error)}; ${path}: ${howToDeepen}`, failure);
}

/**
 * A repository with the same commit without some files, and without a history. Its id depends only on what it
 * holds. Resolves with the paths and globs that were left out; if the commit has none of them, with the
 * repository as it is. Throws `LEAVE_OUT_UNMATCHED` for a glob of nothing: a mistyped one would give the
 * files away.
 *
 * @param paths the suite's own files and folders that the commit has
 * @param globs those of the suite's author
 */
export async function withoutPaths(
  fetched: FetchedCommit,
  { paths, globs }: { paths: readonly string[]; globs: readonly string[] },
  { folder, env, signal }: Pick<FetchParts, 'folder' | 'env' | 'signal'>,
): Promise<FetchedCommit & { leftOut: string[] }> {
  const original = { repository: fetched.repository, env, signal };
  for (const glob of globs) {
    const matched = await gitIn(original, ['ls-files', '-z', '--cached', '--', globSpec(glob)]);
    if (matched.length === 0)
      throw inputError('LEAVE_OUT_UNMATCHED', `"${glob}" matches no file of commit ${fetched.commit}`);
  }
  const leftOut = [...paths, ...globs];
  if (leftOut.length === 0) return { ...fetched, leftOut };
  const specs = [...paths.map((path) => `:(top,literal)${path}`), ...globs.map(globSpec)];
  const repository = keptAt(folder, fetched.repository, ...specs);
  if (!isKept(repository))
    await keep(folder, original, async (fresh) => {
      await rebuild(fetched, specs, fresh);
      return repository;
    });
  const commit = await lineIn({ ...original, repository }, ['rev-parse', '--verify', branch]);
  return { commit, repository, leftOut };
}

/** As git takes a glob. It also matches all that is below a folder of that name. */
function globSpec(glob: string): string {
  return `:(top,glob)${glob}`;
}

async function rebuild(
  fetched: FetchedCommit,
  specs: readonly string[],
  fresh: KeptRepository,
): Promise<void> {
  await makeRepository(fresh, fetched.commit);
  const info = join(fresh.repository, 'objects', 'info');
  mkdirSync(info, { recursive: true });
  const borrowed = join(info, 'alternates');
  writeFileSync(borrowed, `${join(fetched.repository, 'objects')}\n`);
  await gitIn(fresh, ['read-tree', fetched.commit]);
  const list = join(fresh.repository, 'left-out');
  writeFileSync(list, specs.map((spec) => `${spec}\0`).join(''));
  const from = [`--pathspec-from-file=${list}`, '--pathspec-file-nul'];
  const inTree = `--work-tree=${fresh.repository}`;
  await gitIn(fresh, [inTree, 'rm', '-r', '--quiet', '--cached', '--force', ...from]);
  const tree = await lineIn(fresh, ['write-tree']);
  writeFileSync(list, rootCommit(await gitIn(fresh, ['cat-file', 'commit', fetched.commit]), tree));
  const commit = await lineIn(fresh, ['hash-object', '-t', 'commit', '-w', '--', list]);
  rmSync(list);
  await finishRepository(fresh, commit);
  // The pack has all objects of the commit now.
  rmSync(borrowed);
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

/** A bare repository of Offsite's own. Git reads no settings there, and reaches nothing else. */
export interface KeptRepository {
  /** Absolute. */
  repository: string;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}

/** The one branch, on which the agent can continue. The result says which branch of the source it was. */
const branch = 'refs/heads/main';

/**
 * Runs git in a kept repository, and resolves with what it prints.
 *
 * @param input the file that git reads
 */
export function gitIn({ repository, env, signal }: KeptRepository, args: readonly string[], input?: string) {
  return runGit({
    args: [`--git-dir=${repository}`, ...args],
    env,
    signal,
    input,
    reach: 'nothing',
    timeoutMs: gitSources.time.read,
    set: { GIT_INDEX_FILE: join(repository, 'index') },
  });
}

/** The same for a command that prints one line. */
async function lineIn(kept: KeptRepository, args: readonly string[]): Promise<string> {
  return (await gitIn(kept, args)).toString('utf8').trim();
}

/** @param id of a commit for the repository, which tells the format of its objects */
export async function makeRepository(kept: KeptRepository, id: string): Promise<void> {
  const format = /^[\da-f]{64}$/.test(id) ? ['--object-format=sha256'] : [];
  await gitIn(kept, ['init', '--quiet', '--bare', '--template=', ...format, '--', kept.repository]);
}

/** Leaves only a commit in a bare repository: on its branch, in one pack, and in the index. */
export async function finishRepository(kept: KeptRepository, commit: string): Promise<void> {
  await gitIn(kept, ['update-ref', branch, commit]);
  // Leaves out what else is there, such as the message of a tag that was fetched.
  await gitIn(kept, ['repack', '--quiet', '-a', '-d']);
  await gitIn(kept, ['symbolic-ref', 'HEAD', branch]);
  await gitIn(kept, ['read-tree', commit]);
}

/** Where a folder keeps the repository that these parts tell from others. */
function keptAt(folder: string, ...parts: readonly string[]): string {
  return join(folder, createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 40));
}

/** Whether a repository is kept. If so, it stays for a while longer. */
function isKept(repository: string): boolean {
  if (!existsSync(repository)) return false;
  const now = new Date();
  utimesSync(repository, now, now);
  return true;
}

/**
 * Fills a new repository in a folder, and moves it to its place there.
 *
 * @param fill resolves with that place
 */
async function keep(
  folder: string,
  { env, signal }: Pick<KeptRepository, 'env' | 'signal'>,
  fill: (fresh: KeptRepository) => Promise<string>,
): Promise<void> {
  const fresh = mkdtempSync(join(folder, 'making-'));
  try {
    const place = await fill({ repository: fresh, env, signal });
    // Another process may have made the same one.
    if (existsSync(place)) return;
    await rename(fresh, place).catch((error: unknown) => {
      if (!existsSync(place)) throw error;
    });
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function makeKeptFolder(folder: string): void {
  try {
    makeFolder(folder, 0o700);
  } catch (error) {
    throw infrastructureError('SOURCES_NOT_KEPT', `cannot keep sources in ${folder}: ${messageOf(error)}`, {
      hint: 'Name another data folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
      cause: error,
    });
  }
}
