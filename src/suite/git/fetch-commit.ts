import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../base/byte-store.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { gitSources } from '../../bounds/suite.ts';
import type { Repository } from './git-source.ts';
import { failed, type GitCall, kindOfFailure, runGit } from './run-git.ts';

export interface FetchParts {
  /** Keeps the commits that were fetched. */
  folder: string;
  /** Whether git may use the user's settings and credentials. */
  withCredentials: boolean;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  onProgress?: ((line: string) => void) | undefined;
}

export interface FetchedCommit {
  commit: string;
  /** The path of a bare repository with this commit, which the branch `main` names, and no other. */
  repository: string;
}

/** The one branch, on which the agent can continue. The result says which branch of the source it was. */
export const branch = 'refs/heads/main';
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
  const { env, signal } = parts;
  const isId = ref !== undefined && /^([\da-f]{40}|[\da-f]{64})$/i.test(ref);
  const wanted = isId
    ? { name: ref.toLowerCase(), commit: ref.toLowerCase() }
    : await found(ref, address, { env, reach, signal });
  // Who may not use the credentials must not get what was fetched with them either.
  const keptUnder = reach === 'stranger' ? `${reach} ${address}` : address;
  const kept = keptAt(parts.folder, keptUnder, wanted.commit);
  if (existsSync(kept)) {
    const now = new Date();
    utimesSync(kept, now, now);
    return { commit: wanted.commit, repository: kept };
  }
  makeFolder(parts.folder, 0o700);
  removeUnused(parts.folder);
  const fresh = mkdtempSync(join(parts.folder, 'fetching-'));
  try {
    const commit = await fetchInto(fresh, { address, reach, name: wanted.name }, parts).catch(
      (error: unknown) => {
        if (!isId || kindOfFailure(error) !== 'GIT_REF_MISSING') throw error;
        throw failed(`the repository has no commit ${wanted.commit}: ${messageOf(error)}`, 'GIT_REF_MISSING');
      },
    );
    const repository = keptAt(parts.folder, keptUnder, commit);
    // Another process may have fetched the same one.
    if (!existsSync(repository))
      await rename(fresh, repository).catch((error: unknown) => {
        if (!existsSync(repository)) throw error;
      });
    return { commit, repository };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
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

function keptAt(folder: string, address: string, commit: string): string {
  return join(folder, createHash('sha256').update(`${address}\0${commit}`).digest('hex').slice(0, 40));
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
  folder: string,
  { address, reach, name }: { address: string; reach: GitCall['reach']; name: string },
  { env, signal, onProgress }: FetchParts,
): Promise<string> {
  const here = { env, signal, reach: 'nothing' as const, timeoutMs: gitSources.time.read };
  const git = `--git-dir=${folder}`;
  const format = /^[\da-f]{64}$/.test(name) ? ['--object-format=sha256'] : [];
  await runGit({ ...here, args: ['init', '--quiet', '--bare', '--template=', ...format, '--', folder] });
  using watch = watched(folder, signal);
  const options = [
    '--progress',
    '--depth=1',
    '--no-tags',
    '--no-write-fetch-head',
    '--no-recurse-submodules',
  ];
  await runGit({
    env,
    reach,
    signal: watch.signal,
    timeoutMs: gitSources.time.fetched,
    args: [git, 'fetch', ...options, '--', address, `+${name}:${fetched}`],
    ...(onProgress && { onProgress }),
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw watch.signal.aborted ? watch.signal.reason : error;
  });
  const answer = await runGit({ ...here, args: [git, 'rev-parse', '--verify', `${fetched}^{commit}`] });
  const commit = answer.toString('utf8').trim();
  await runGit({ ...here, args: [git, 'update-ref', '-d', fetched] });
  await finishRepository(folder, commit, { env, signal });
  return commit;
}

/** Leaves only a commit in a bare repository: on its branch, in one pack, and in the index. */
export async function finishRepository(
  folder: string,
  commit: string,
  { env, signal }: Pick<FetchParts, 'env' | 'signal'>,
): Promise<void> {
  const here = { env, signal, reach: 'nothing' as const, timeoutMs: gitSources.time.read };
  const git = `--git-dir=${folder}`;
  await runGit({ ...here, args: [git, 'update-ref', branch, commit] });
  // Leaves out what else is there, such as the message of a tag that was fetched.
  await runGit({ ...here, args: [git, 'repack', '--quiet', '-a', '-d'] });
  await runGit({ ...here, args: [git, 'symbolic-ref', 'HEAD', branch] });
  await runGit({ ...here, args: [git, 'read-tree', commit], set: { GIT_INDEX_FILE: join(folder, 'index') } });
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
