import { basename, posix, resolve } from 'node:path';
import { z } from 'zod';
import { parseForeignJson } from '../base/parse-json.ts';
import { projectFiles } from '../bounds/anyone.ts';
import { repositoryAbove } from '../suite/find-config.ts';
import { shellWord } from '../text/escape.ts';

/** The files that show what a project in Python is. */
const ofPython: readonly string[] = [
  'pyproject.toml',
  'setup.py',
  'setup.cfg',
  'requirements.txt',
  'tox.ini',
  'pytest.ini',
];

/** The files whose texts are read. */
const filesToRead: readonly string[] = ['package.json', ...ofPython, 'Makefile'];

/** The files that show what a project is. */
export interface ProjectFiles {
  /** Whether its root has a file or folder of this name. */
  has(name: string): boolean;
  /** The text of a file in its root. A file that is missing, too large or unreadable has none. */
  text(name: string): string | undefined;
  /** Some of its tests in Python: paths and texts. */
  pythonTests: ReadonlyMap<string, string>;
  /** Folders of these, without a slash at the end, that are packages of Python. */
  packages: ReadonlySet<string>;
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
  const toRead = root.filter(({ path }) => filesToRead.includes(path));
  const texts = await textsOf(git, before, toRead);
  const python = tests.filter((path) => path.endsWith('.py')).slice(0, projectFiles.count.tests);
  const ofTests = python.length === 0 ? [] : await listed(git, after, python);
  const pythonTests = await textsOf(git, after, ofTests);
  const names = new Set(root.map(({ path }) => path));
  const inits = [...pythonTests.keys()].map((path) => posix.join(posix.dirname(path), '__init__.py'));
  const packages = inits.length > 0 ? await listed(git, after, inits) : [];
  return {
    has: (name) => names.has(name),
    text: (name) => texts.get(name),
    pythonTests,
    packages: new Set(packages.map(({ path }) => posix.dirname(path))),
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

/** What the files of somebody's program show about it. Nothing of it is run. */
interface ProjectTools {
  /** A script that gets its dependencies. Undefined if it has none. */
  install: string | undefined;
  /** A command that runs all of its tests. */
  test: string | undefined;
}

export interface Project {
  /** The name of the folder, reduced to letters, digits, `_`, `.` and `-`. */
  name: string;
  /** The root of the git repository that the folder is in. */
  repository: string | undefined;
}

/** What a first configuration says of a folder. */
export function lookAtProject(folder: string): Project {
  const plain = basename(resolve(folder)).replaceAll(/[^\w.-]+/g, '-');
  return { name: plain.replaceAll(/^[-.]+|[-.]+$/g, '') || 'project', repository: repositoryAbove(folder) };
}

/** What to install and test a project with. */
export function toolsOf(files: ProjectFiles): ProjectTools {
  const found = kinds.flatMap((kind) => kind(files) ?? []);
  return {
    install: found.find(({ install }) => install)?.install,
    test: found.find(({ test }) => test)?.test,
  };
}

type FoundTools = Partial<ProjectTools>;

/** The most specific one first. */
const kinds: readonly ((files: ProjectFiles) => FoundTools | undefined)[] = [
  nodeProject,
  pythonProject,
  ({ has }) => (has('Cargo.toml') ? { install: 'cargo fetch', test: 'cargo test' } : undefined),
  ({ has }) => (has('go.mod') ? { install: 'go mod download', test: 'go test ./...' } : undefined),
  ({ text }) => (/^test\s*:(?!=)/m.test(text('Makefile') ?? '') ? { test: 'make test' } : undefined),
];

const PackageJson = z.object({
  packageManager: z.string().optional(),
  scripts: z.record(z.string(), z.unknown()).default({}),
  dependencies: z.record(z.string(), z.unknown()).default({}),
  devDependencies: z.record(z.string(), z.unknown()).default({}),
});

/** Lock file -> the package manager that writes it, and how it installs exactly what the file says. */
const lockFiles = [
  ['pnpm-lock.yaml', 'pnpm', 'npx --yes pnpm install --frozen-lockfile'],
  ['yarn.lock', 'yarn', 'npx --yes yarn install --frozen-lockfile'],
  ['bun.lock', 'bun', 'npx --yes bun install --frozen-lockfile'],
  ['package-lock.json', 'npm', 'npm ci'],
  ['npm-shrinkwrap.json', 'npm', 'npm ci'],
] as const;

function nodeProject(files: ProjectFiles): FoundTools | undefined {
  const text = files.text('package.json');
  const parsed = PackageJson.safeParse(text === undefined ? undefined : jsonOf(text));
  if (!parsed.success) return undefined;
  const { packageManager, scripts, dependencies, devDependencies } = parsed.data;
  const locked = lockFiles.find(([file]) => files.has(file));
  const named = /^(npm|pnpm|yarn|bun)@/.exec(packageManager ?? '')?.[1];
  const manager = locked?.[1] ?? named ?? 'npm';
  const needs = Object.keys(dependencies).length + Object.keys(devDependencies).length > 0;
  const script = scripts.test;
  // What `npm init` writes fails on purpose.
  const hasTests = typeof script === 'string' && !script.includes('no test specified');
  return {
    ...(needs && { install: locked?.[2] ?? 'npm install' }),
    ...(hasTests && { test: manager === 'npm' ? 'npm test' : `npx --yes ${manager} test` }),
  };
}

function pythonProject(files: ProjectFiles): FoundTools | undefined {
  const texts = new Map(ofPython.map((name) => [name, files.text(name)]));
  const tests = files.pythonTests;
  if (tests.size === 0 && [...texts.values()].every((text) => text === undefined)) return undefined;
  const isPackage = /^\[(project|build-system)\]/m.test(texts.get('pyproject.toml') ?? '');
  // Without the option, Debian's pip refuses to install outside of a virtual environment.
  const pip = 'python3 -m pip install --break-system-packages';
  const install =
    isPackage || texts.get('setup.py') !== undefined
      ? `${pip} --editable .`
      : texts.get('requirements.txt') === undefined
        ? undefined
        : `${pip} --requirement requirements.txt`;
  const usesPytest =
    files.has('conftest.py') ||
    [...texts.values()].some((text) => text?.includes('pytest')) ||
    [...tests.values()].some((text) => ofPytest.test(text));
  return {
    ...(install && { install }),
    test: usesPytest ? 'python3 -m pytest' : unittest(files),
  };
}

/** From the root, unittest looks only into packages, and what it does not find passes. */
function unittest({ pythonTests, packages }: ProjectFiles): string {
  const folders = [...new Set([...pythonTests.keys()].map((path) => posix.dirname(path)))];
  const outside = folders.filter((folder) => folder !== '.' && !packages.has(folder));
  const commands = outside.map((folder) => `python3 -m unittest discover ${shellWord(folder)}`);
  const fromRoot = outside.length < folders.length || folders.length === 0 ? ['python3 -m unittest'] : [];
  return [...fromRoot, ...commands].join(' && ');
}

/** Marks a test for pytest: unittest finds no functions outside of classes, and exits with 0. */
const ofPytest = /^(import|from) pytest\b|^(async )?def test/m;

function jsonOf(text: string): unknown {
  try {
    return parseForeignJson(text);
  } catch {
    return undefined;
  }
}
