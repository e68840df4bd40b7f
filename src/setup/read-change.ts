import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import picomatch from 'picomatch';
import { inputError, OffsiteError } from '../base/offsite-error.ts';
import { addedCases, gitSources } from '../bounds/suite.ts';
import { runGit } from '../suite/git/run-git.ts';
import { readFile } from '../suite/read-file.ts';
import { type ProjectFiles, projectFilesAt } from './project.ts';

/** What to make a case of: a commit, a range of commits, or a diff onto a commit. */
export type ChangeRequest =
  | { kind: 'commit'; commit: string }
  | { kind: 'range'; range: string }
  | { kind: 'diff'; file: string; base: string };

/** A change of a repository, in two patches that apply to the same commit. */
export interface Change {
  /** The root of the repository. */
  repository: string;
  /** The id of the commit before the change. */
  before: string;
  /** What the project has before the change, and its tests after it. */
  project: ProjectFiles;
  /** One line that says what it is: the subject of the commit, or the name of the diff. */
  title: string;
  /** The files that the predicate chose, and a patch of these alone. */
  tests: PartOfChange;
  /** All other files. */
  rest: PartOfChange;
}

export interface PartOfChange {
  files: string[];
  patch: Buffer;
}

interface Reading {
  folder: string;
  isTest: (path: string) => boolean;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}

/**
 * Reads a change of the repository that a folder is in. Changes nothing in the repository. Throws `input`
 * errors with what git said.
 */
export async function readChange(
  request: ChangeRequest,
  { folder, isTest, env, signal }: Reading,
): Promise<Change> {
  const timeoutMs = gitSources.time.read;
  const run = (args: string[], set: Record<string, string>) =>
    runGit({ args: ['-C', folder, ...args], env, reach: 'local', timeoutMs, signal, set });
  const git = async (args: string[], set: Record<string, string> = {}) =>
    (await run(args, set)).toString('utf8');
  const repository = (await git(['rev-parse', '--show-toplevel'])).trim();
  const idOf = async (name: string) => {
    const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`];
    return (await git(args).catch(() => '')).trim();
  };
  const commitNamed = async (name: string) => {
    const id = await idOf(name);
    if (id === '')
      throw refused(`the repository has no commit ${name}`, 'git log --oneline shows its commits.');
    return id;
  };
  const scratch = mkdtempSync(join(tmpdir(), 'offsite-change-'));
  try {
    const { before, after, title, set } = await endsOf(request, { git, idOf, commitNamed, scratch });
    const named = await git(['diff', '--no-renames', '--name-only', '-z', before, after], set);
    const files = named.split('\0').filter((path) => path !== '');
    if (files.length > addedCases.count.files)
      throw refused(`${title} changes ${files.length} files`, `A case may change ${addedCases.count.files}.`);
    const partOf = async (chosen: string[]): Promise<PartOfChange> => {
      if (chosen.length === 0) return { files: [], patch: Buffer.alloc(0) };
      const args = ['-C', repository, 'diff', ...patchOptions, before, after, '--', ...chosen];
      const patch = await run(args, { ...set, GIT_LITERAL_PATHSPECS: '1' });
      if (patch.length > addedCases.bytes.patch)
        throw refused(`the patch of ${title} is too large`, 'Make a case of a smaller change.');
      return { files: chosen, patch };
    };
    const project = await projectFilesAt({ before, after, tests: files.filter(isTest) }, (args) =>
      git(args, set),
    );
    return {
      repository,
      before,
      title,
      project,
      tests: await partOf(files.filter(isTest)),
      rest: await partOf(files.filter((path) => !isTest(path))),
    };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Options that make patches independent of the user's settings, and run no program of the repository. */
const patchOptions = [
  '--no-renames',
  '--binary',
  '--full-index',
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--unified=3',
  '--inter-hunk-context=0',
  '--submodule=short',
  '--src-prefix=a/',
  '--dst-prefix=b/',
];

interface Ends {
  before: string;
  /** A commit or a tree. */
  after: string;
  title: string;
  /** Environment variables with which git finds `after`. */
  set: Record<string, string>;
}

interface Asking {
  git: (args: string[], set?: Record<string, string>) => Promise<string>;
  /** Empty if there is none. */
  idOf: (name: string) => Promise<string>;
  commitNamed: (name: string) => Promise<string>;
  /** A folder for what git writes. */
  scratch: string;
}

async function endsOf(request: ChangeRequest, asking: Asking): Promise<Ends> {
  const { git, idOf, commitNamed } = asking;
  const subjectOf = async (id: string) =>
    (await git(['log', '-1', '--no-show-signature', '--format=%s', id])).trim();
  switch (request.kind) {
    case 'commit': {
      const after = await commitNamed(request.commit);
      const before = await idOf(`${after}^1`);
      if (before === '')
        throw refused(
          `${request.commit} has no commit before it, or the clone is shallow`,
          'Name a later commit with --commit, or fetch more: git fetch --unshallow',
        );
      return { before, after, title: await subjectOf(after), set: {} };
    }
    case 'range': {
      const [, from = '', dots, to = ''] = /^(.*?)(\.\.\.?)(.*)$/.exec(request.range) ?? [];
      if (dots === undefined)
        throw refused(
          `${request.range} is not a range`,
          'Expected FROM..TO, or BRANCH...BRANCH for a pull request.',
        );
      const [first, after] = [await commitNamed(from || 'HEAD'), await commitNamed(to || 'HEAD')];
      const before = dots === '..' ? first : (await git(['merge-base', first, after])).trim();
      return { before, after, title: await subjectOf(after), set: {} };
    }
    case 'diff':
      return diffEnds(request, asking);
  }
}

/** The tree after a diff, in a store of objects of its own. */
async function diffEnds(
  { file, base }: Extract<ChangeRequest, { kind: 'diff' }>,
  { git, commitNamed, scratch }: Asking,
): Promise<Ends> {
  const before = await commitNamed(base);
  const objects = resolve(scratch, 'objects');
  const own = (await git(['rev-parse', '--path-format=absolute', '--git-path', 'objects'])).trim();
  const set = {
    GIT_INDEX_FILE: resolve(scratch, 'index'),
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(own),
  };
  mkdirSync(objects);
  await git(['read-tree', before], set);
  try {
    await git(['apply', '--cached', '--whitespace=nowarn', '--', resolve(file)], set);
  } catch (error) {
    const why = error instanceof OffsiteError ? error.message : String(error);
    throw refused(
      `${file} does not apply to ${base}: ${why}`,
      'Name the commit that it was made from with --base.',
    );
  }
  const after = (await git(['write-tree'], set)).trim();
  return { before, after, title: titleOf(file), set };
}

/** The subject, if the diff is from `git format-patch`; otherwise the file's name. */
function titleOf(file: string): string {
  const text = readFile(file, { maximumBytes: addedCases.bytes.patch }).content.toString('utf8', 0, 4096);
  const [, subject] = /^Subject: (?:\[PATCH[^\]]*\] )?(.+)$/m.exec(text) ?? [];
  return subject?.trim() ?? file.split(/[\\/]/).at(-1) ?? file;
}

function refused(message: string, hint: string): OffsiteError {
  return inputError('CHANGE_UNUSABLE', message, { hint });
}

/** Where tests are in most repositories. */
const usual = [
  '**/{test,tests,__tests__,spec,specs,testdata,__snapshots__}/**',
  '**/*.{test,spec}.*',
  '**/*[-_]{test,spec}.*',
  '**/test_*.*',
  '**/*{Test,Tests,Spec}.{java,kt,scala,groovy,cs,php,swift}',
  '**/conftest.py',
];

/** Returns a function that tells whether a path in a repository is a test, or a file that tests read. */
export function testFileMatcher(globs: readonly string[] | undefined): (path: string) => boolean {
  return picomatch([...(globs ?? usual)], { dot: true });
}
