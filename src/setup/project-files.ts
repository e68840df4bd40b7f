import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { projectFiles } from '../bounds/anyone.ts';
import { readText } from '../suite/yaml-file.ts';

/** The files that show what a project in Python is. */
export const ofPython: readonly string[] = [
  'pyproject.toml',
  'setup.py',
  'setup.cfg',
  'requirements.txt',
  'tox.ini',
  'pytest.ini',
];

/** The files whose texts are read. */
const filesToRead: readonly string[] = ['package.json', ...ofPython, 'Makefile'];

/** The files that show what a project is, wherever they are read from. */
export interface ProjectFiles {
  /** Whether its root has a file or folder of this name. */
  has(name: string): boolean;
  /** The text of a file in its root. A file that is missing, too large or unreadable has none. */
  text(name: string): string | undefined;
  /** The texts of some of its tests in Python. */
  pythonTests(): string[];
}

/** The files of a project in a folder. */
export function filesIn(folder: string): ProjectFiles {
  return {
    has: (name) => existsSync(join(folder, name)),
    text: (name) => textIn(folder, name),
    pythonTests: () =>
      ['', 'tests', 'test']
        .flatMap((below) => namesIn(join(folder, below)).map((name) => join(below, name)))
        .filter((path) => /(^|\/)test_[^/]*\.py$|_test\.py$/.test(path))
        .slice(0, projectFiles.count.tests)
        .flatMap((path) => textIn(folder, path) ?? []),
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

function textIn(folder: string, name: string): string | undefined {
  const file = join(folder, name);
  if (!existsSync(file)) return undefined;
  try {
    return readText(file, { maximumBytes: projectFiles.bytes.file });
  } catch {
    return undefined;
  }
}

interface Trees {
  /** A commit. */
  before: string;
  /** A commit or a tree, and paths of tests in it. */
  after: string;
  tests: readonly string[];
}

/** The files that show what a project is, as a commit has them, with the tests of a later tree. */
export async function projectFilesAt(
  { before, after, tests }: Trees,
  git: (args: string[]) => Promise<string>,
): Promise<ProjectFiles> {
  const root = await listed(git, before);
  const texts = await textsOf(
    git,
    before,
    root.filter(({ path }) => filesToRead.includes(path)),
  );
  const python = tests.filter((path) => path.endsWith('.py')).slice(0, projectFiles.count.tests);
  const ofTests =
    python.length > 0
      ? await textsOf(git, after, await listed(git, after, python))
      : new Map<string, string>();
  const names = new Set(root.map(({ path }) => path));
  return {
    has: (name) => names.has(name),
    text: (name) => texts.get(name),
    pythonTests: () => [...ofTests.values()],
  };
}

interface Listed {
  path: string;
  isFile: boolean;
  /** Bytes; NaN for a folder. */
  size: number;
}

/** The entries of a tree at these paths, or all in its root. */
async function listed(
  git: (args: string[]) => Promise<string>,
  tree: string,
  paths: readonly string[] = [],
): Promise<Listed[]> {
  const lines = await git(['ls-tree', '-l', '-z', '--full-tree', tree, '--', ...paths]);
  return lines.split('\0').flatMap((line) => {
    const [, mode = '', size, path] = /^(\d+) \w+ \w+ +(\d+|-)\t(.+)$/s.exec(line) ?? [];
    return path === undefined ? [] : [{ path, isFile: mode.startsWith('100'), size: Number(size) }];
  });
}

async function textsOf(
  git: (args: string[]) => Promise<string>,
  tree: string,
  found: readonly Listed[],
): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const { path, isFile, size } of found)
    if (isFile && size <= projectFiles.bytes.file)
      texts.set(path, await git(['cat-file', 'blob', `${tree}:${path}`]));
  return texts;
}
