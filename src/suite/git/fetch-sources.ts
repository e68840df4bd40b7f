import { readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import pLimit from 'p-limit';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { gitSources } from '../../bounds/suite.ts';
import type { KnownKeys } from '../../redaction/redactor.ts';
import { plural } from '../../text/quantities.ts';
import { namedFiles } from '../answers.ts';
import { repositoryAbove } from '../find-config.ts';
import { allowList, readAuthority } from '../hosts/host-pattern.ts';
import { heldKey, type Reach, readFile, realPaths, requireWithin } from '../read-file.ts';
import { readSuite } from '../read-suite.ts';
import type { SuiteFile } from '../suite-file.ts';
import type { YamlFile } from '../yaml-file.ts';
import { type CommittedEntry, committedEntries, contentsOf } from './commit-files.ts';
import { type GitSource, type PlannedSource, type Repository, withoutCredentials } from './git-source.ts';
import { type FetchParts, fetchCommit, withoutPaths } from './kept-commits.ts';
import { commitOf, failed, kindOfFailure } from './run-git.ts';

export interface SourceParts extends Pick<FetchParts, 'env' | 'signal'> {
  dataFolder: string;
  allowOutside?: readonly string[] | undefined;
  except?: readonly string[] | undefined;
  /** Patterns of the hosts at which git may use the user's credentials: `git` of the configuration. */
  credentialsFor?: readonly string[] | undefined;
  /** Keys that no file of a source may hold. */
  keys?: KnownKeys | undefined;
  /** Receives what people should know about a source. */
  note(message: string): void;
  /** Receives what git is doing: `fetch main of https://…: Receiving objects: 45 %`. */
  onProgress(message: string): void;
}

/** A problem with a source, and the key of the source that it is about. */
export interface SourceProblem {
  problem: string;
  key: 'git' | 'ref' | 'leaveOut';
}

export interface FetchedSources {
  /** The suite that names them, as it was read: it is loaded as it was then. */
  suite: YamlFile<SuiteFile>;
  /** By {@link keyOfSource}; or what is wrong with one. */
  byKey: ReadonlyMap<string, PlannedSource | SourceProblem>;
}

export function keyOfSource({ git, ref, history, leaveOut }: GitSource): string {
  return JSON.stringify([git, ref, history, leaveOut]);
}

/**
 * Fetches the sources that a suite names into the data folder. Throws as `readSuite` does; what is wrong
 * with a source is in the result, for `loadSuite` to report at its place.
 */
export async function fetchSources(file: string, parts: SourceParts): Promise<FetchedSources> {
  const suite = readSuite(file);
  const { value } = suite;
  const named = [value.source, ...(value.cases ?? []).map(({ source }) => source)];
  const sources = new Map(
    named.flatMap((source) => (source && 'git' in source ? [[keyOfSource(source), source] as const] : [])),
  );
  const limit = pLimit(gitSources.count.parallel);
  const place = {
    folder: dirname(resolve(file)),
    own: sources.size > 0 ? ownPathsOf(file, value) : undefined,
  };
  const planned = [...sources].map(([key, source]) =>
    limit(async () => [key, await outcomeOf(source, place, parts)] as const),
  );
  return { suite, byKey: new Map(await Promise.all(planned)) };
}

/** What a suite keeps from agents in its own repository. Paths are relative to the repository, with `/`. */
interface OwnPaths {
  /** The folder of the repository, without links. */
  repository: string;
  suiteFile: string;
  /** The suite's folder, unless it is the whole repository, and the files that the suite names. */
  paths: string[];
}

/** Undefined if the suite is in no repository. */
function ownPathsOf(file: string, suite: SuiteFile): OwnPaths | undefined {
  const real = realpathSync(file);
  const folder = dirname(real);
  const repository = repositoryAbove(folder);
  if (repository === undefined) return undefined;
  const named = namedFiles(suite).map((name) => resolve(folder, name));
  const all = [folder, real, ...named, ...realPaths(named)].map((path) =>
    relative(repository, path).split(sep).join('/'),
  );
  const inside = all.filter((path) => path !== '' && path !== '..' && !path.startsWith('../'));
  return { repository, suiteFile: relative(repository, real).split(sep).join('/'), paths: outermost(inside) };
}

function outermost(paths: readonly string[]): string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)));
}

interface SuitePlace {
  folder: string;
  own: OwnPaths | undefined;
}

async function outcomeOf(
  source: GitSource,
  place: SuitePlace,
  parts: SourceParts,
): Promise<PlannedSource | SourceProblem> {
  try {
    return await plannedSource(source, place, parts);
  } catch (error) {
    if (!(error instanceof OffsiteError) || parts.signal.aborted) throw error;
    return { problem: withoutCredentials(messageOf(error)), key: keyOf(error, source) };
  }
}

function keyOf(error: OffsiteError, { ref }: GitSource): SourceProblem['key'] {
  if (error.code === 'LEAVE_OUT_UNMATCHED') return 'leaveOut';
  return ref !== undefined && kindOfFailure(error) === 'GIT_REF_MISSING' ? 'ref' : 'git';
}

async function plannedSource(
  { git, ref, history, leaveOut }: GitSource,
  { folder, own }: SuitePlace,
  {
    dataFolder,
    allowOutside = [],
    except = [],
    credentialsFor = [],
    keys,
    note,
    onProgress,
    ...asking
  }: SourceParts,
): Promise<PlannedSource> {
  const repositoryNamed = repositoryOf(git, folder);
  const reach: Reach = { within: [folder, ...allowOutside], except };
  if (repositoryNamed.kind === 'local') requireLocalRepository(repositoryNamed.path, reach);
  const isNamed = repositoryNamed.kind === 'local' || isNamedHost(repositoryNamed.url, credentialsFor);
  if (!isNamed && !/^(https?|git):/.test(git)) throw failed(`ssh uses your keys. ${nameHost}`);
  const url = withoutCredentials(git);
  const title = `${ref ?? 'HEAD'} of ${url}`;
  const fetching = { ...asking, folder: join(dataFolder, 'sources') };
  const fetched = await fetchCommit(repositoryNamed, ref, {
    ...fetching,
    withCredentials: isNamed,
    onProgress: (line) => onProgress(`fetch ${title}: ${withoutCredentials(line)}`),
  }).catch((error: unknown) => {
    if (isNamed || kindOfFailure(error) !== 'GIT_FAILED') throw error;
    throw failed(`${messageOf(error)}. It was asked without your credentials. ${nameHost}`);
  });
  const whole = await committedEntries(fetched.commit, { ...asking, repository: fetched.repository });
  const isOwn = own !== undefined && hasSuite(own, repositoryNamed, whole);
  const paths = isOwn ? own.paths.filter((path) => whole.some((entry) => isAtOrBelow(entry, path))) : [];
  const { commit, repository, leftOut } = await withoutPaths(fetched, { paths, globs: leaveOut }, fetching);
  const reading = { ...asking, repository };
  const rebuilt = commit === fetched.commit ? undefined : commit;
  const entries = rebuilt === undefined ? whole : await committedEntries(rebuilt, reading);
  if (leftOut.length > 0) {
    const files = plural(whole.filter(isFile).length - entries.filter(isFile).length, 'file');
    note(`${title}: left out of the workspace: ${namesText(leftOut)} (${files})`);
  }
  if (repositoryNamed.kind === 'local' && (ref === undefined || ref === 'HEAD')) {
    const here = await commitOf(repositoryNamed.path, asking, isOwn ? own.paths : []);
    if (here?.dirty === true && here.id === fetched.commit)
      note(`${title}: changes that are not committed are not in the workspace`);
  }
  const pointers = await lookInto(entries, keys, reading);
  const submodules = entries.filter(({ kind }) => kind === 'submodule').map(({ path }) => path);
  if (submodules.length > 0) note(`${title}: submodules are not fetched: ${submodules.join(', ')}`);
  if (pointers.length > 0) {
    const some = pointers.slice(0, 3).join(', ');
    note(
      `${title}: files of Git LFS are not fetched, only their pointers: ${pointers.length}, such as ${some}`,
    );
  }
  return { url, ref, commit: fetched.commit, rebuilt, history, repository };
}

const nameHost = 'If this suite may use them, name the host under git.credentials in offsite.yaml';

/** Whether a URL, or git's `user@host:path`, is at one of the hosts. With ssh, the port does not count. */
function isNamedHost(url: string, patterns: readonly string[]): boolean {
  const [, scheme = 'ssh', host = ''] =
    /^([\w+.-]+):\/\/(?:[^/]*@)?([^/]*)/.exec(url) ?? /^()(?:[^/]*@)?(\[[^\]]*\]|[^/:]*):/.exec(url) ?? [];
  const isWeb = scheme.startsWith('http');
  const authority = readAuthority(isWeb ? host : host.replace(/:\d*$/, ''), scheme === 'http' ? 80 : 443);
  return authority !== undefined && allowList(patterns).allows(authority);
}

/** Whether a repository is the suite's own, or another copy of it. */
function hasSuite(own: OwnPaths, named: Repository, entries: readonly CommittedEntry[]): boolean {
  if (entries.some(({ path }) => path === own.suiteFile)) return true;
  return named.kind === 'local' && realpathSync(named.path) === own.repository;
}

function isAtOrBelow({ path }: CommittedEntry, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}

function isFile({ kind }: CommittedEntry): boolean {
  return kind !== 'folder';
}

function namesText(names: readonly string[]): string {
  const more = names.length - shownNames;
  return `${names.slice(0, shownNames).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const shownNames = 5;

const pointer = Buffer.from('version https://git-lfs.github.com/spec/');

/** Refuses a file with a key. Returns the paths of pointers to files that git itself does not have. */
async function lookInto(
  entries: readonly CommittedEntry[],
  keys: KnownKeys | undefined,
  reading: Parameters<typeof contentsOf>[1],
): Promise<string[]> {
  const looksForKeys = keys?.named.some(([, key]) => key !== '') ?? false;
  const small = 1024;
  const read = entries.filter(
    ({ kind, size }) =>
      kind !== 'folder' && kind !== 'submodule' && (looksForKeys || (size < small && size > pointer.length)),
  );
  const pointers: string[] = [];
  const paths = read.map(({ path }) => path).values();
  for await (const content of contentsOf(read, reading)) {
    const path = paths.next().value ?? '';
    if (content.subarray(0, pointer.length).equals(pointer)) pointers.push(path);
    const held = keys?.find(content);
    if (held) throw failed(`${path}:${held.line}:${held.column}: ${heldKey(held.name)}`);
  }
  return pointers;
}

/** A path is relative to the suite's folder. As in git, `host:path` is a remote one. */
function repositoryOf(git: string, folder: string): Repository {
  if (git.startsWith('file://')) return { kind: 'local', path: pathOfUrl(git) };
  const isRemote = /^[\w+.-]+:\/\//.test(git) || /^[^/]*:/.test(git);
  return isRemote ? { kind: 'remote', url: git } : { kind: 'local', path: resolve(folder, git) };
}

function pathOfUrl(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw failed(`${url} names no path of this machine: ${messageOf(error)}`);
  }
}

/**
 * Throws an `input` error unless a folder is a repository and all parts of it may be read. A repository may
 * name folders elsewhere that hold its objects.
 */
function requireLocalRepository(path: string, reach: Exclude<Reach, 'anywhere'>): void {
  /** Checks a part before anything in it is read. */
  const reached = (part: string) => {
    requireWithin(path, realPathOf(part), reach);
    return part;
  };
  try {
    const named = gitFolderOf(reached(path));
    if (named === undefined) throw failed(`${path} is not a git repository`);
    const folder = reached(named);
    const common = reached(pathIn(join(folder, 'commondir'), folder) ?? folder);
    const objects = reached(join(common, 'objects'));
    const parts = [folder, common, objects, ...alternatesOf(objects, reached, new Set())];
    for (const part of [path, ...new Set(parts.flatMap(linksBelow))]) reached(part);
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    throw unreadable(path, error);
  }
}

/** Names a missing path in plain words. */
function unreadable(path: string, error: unknown) {
  const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  return failed(
    `cannot read ${path}: ${isMissing ? 'it, or a part of it, does not exist' : messageOf(error)}`,
  );
}

/** The links in a repository, which git follows. */
function linksBelow(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isSymbolicLink())
    .map(({ parentPath, name }) => join(parentPath, name));
}

/** `.git` in the folder, what a file `.git` names, or the folder itself. */
function gitFolderOf(path: string): string | undefined {
  const inside = join(path, '.git');
  const stats = statSync(inside, { throwIfNoEntry: false });
  if (stats?.isFile()) {
    const [, named] = /^gitdir: (.+)$/m.exec(textOf(inside)) ?? [];
    return named === undefined ? undefined : resolve(path, named);
  }
  const folder = stats?.isDirectory() ? inside : path;
  return statSync(join(folder, 'objects'), { throwIfNoEntry: false })?.isDirectory() ||
    statSync(join(folder, 'commondir'), { throwIfNoEntry: false })?.isFile()
    ? folder
    : undefined;
}

/** The folder that a small file of a repository names. */
function pathIn(file: string, folder: string): string | undefined {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return undefined;
  return resolve(folder, textOf(file).trim());
}

/** The folders from which a folder of objects borrows: git's alternates, and their own alternates. */
function alternatesOf(objects: string, reached: (part: string) => string, seen: Set<string>): string[] {
  const file = join(objects, 'info', 'alternates');
  if (seen.has(objects) || !statSync(file, { throwIfNoEntry: false })?.isFile()) return [];
  seen.add(objects);
  const named = textOf(file).split('\n');
  return named
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => {
      const other = reached(resolve(objects, line.replace(/^"(.*)"$/, '$1')));
      return [other, ...alternatesOf(other, reached, seen)];
    });
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function textOf(file: string): string {
  return readFile(file).content.toString('utf8');
}
