import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { parseForeignJson } from '../base/parse-json.ts';
import { filesIn, ofPython, type ProjectFiles } from './project-files.ts';

/** What the files of somebody's program show about it. Nothing of it is run. */
export interface ProjectTools {
  /** The program that gets its dependencies: npm, pnpm, yarn, bun, pip, cargo, go. */
  packageManager: string | undefined;
  /** A script that gets its dependencies. Undefined if it has none. */
  install: string | undefined;
  /** A command that runs all of its tests. */
  test: string | undefined;
}

export interface Project extends ProjectTools {
  /** The name of the folder, reduced to letters, digits, `_`, `.` and `-`. */
  name: string;
  /** The root of the git repository that the folder is in. */
  repository: string | undefined;
}

/** Looks at the files of a project in a folder. Those that cannot be read count as missing. */
export function lookAtProject(folder: string): Project {
  return {
    name:
      basename(resolve(folder))
        .replaceAll(/[^\w.-]+/g, '-')
        .replaceAll(/^[-.]+|[-.]+$/g, '') || 'project',
    repository: repositoryOf(resolve(folder)),
    ...toolsOf(filesIn(folder)),
  };
}

/** What to install and test a project with. */
export function toolsOf(files: ProjectFiles): ProjectTools {
  const found = kinds.map((kind) => kind(files)).filter((kind) => kind !== undefined);
  return {
    packageManager: found.find(({ packageManager }) => packageManager)?.packageManager,
    install: found.find(({ install }) => install)?.install,
    test: found.find(({ test }) => test)?.test,
  };
}

type FoundTools = Partial<ProjectTools>;

/** The most specific one first. */
const kinds: readonly ((files: ProjectFiles) => FoundTools | undefined)[] = [
  nodeProject,
  pythonProject,
  cargo,
  go,
  make,
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
    packageManager: manager,
    ...(needs && { install: locked?.[2] ?? 'npm install' }),
    ...(hasTests && { test: manager === 'npm' ? 'npm test' : `npx --yes ${manager} test` }),
  };
}

function pythonProject(files: ProjectFiles): FoundTools | undefined {
  const texts = new Map(ofPython.map((name) => [name, files.text(name)]));
  const tests = files.pythonTests();
  if (tests.length === 0 && [...texts.values()].every((text) => text === undefined)) return undefined;
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
    tests.some((text) => ofPytest.test(text));
  return {
    packageManager: 'pip',
    ...(install && { install }),
    test: usesPytest ? 'python3 -m pytest' : 'python3 -m unittest',
  };
}

/** Marks a test for pytest: unittest finds no functions outside of classes, and exits with 0. */
const ofPytest = /^(import|from) pytest\b|^(async )?def test/m;

function cargo(files: ProjectFiles): FoundTools | undefined {
  if (!files.has('Cargo.toml')) return undefined;
  return { packageManager: 'cargo', install: 'cargo fetch', test: 'cargo test' };
}

function go(files: ProjectFiles): FoundTools | undefined {
  if (!files.has('go.mod')) return undefined;
  return { packageManager: 'go', install: 'go mod download', test: 'go test ./...' };
}

function make(files: ProjectFiles): FoundTools | undefined {
  const text = files.text('Makefile') ?? '';
  return /^test\s*:(?!=)/m.test(text) ? { test: 'make test' } : undefined;
}

function repositoryOf(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) return folder;
  const above = dirname(folder);
  return above === folder ? undefined : repositoryOf(above);
}

function jsonOf(text: string): unknown {
  try {
    return parseForeignJson(text);
  } catch {
    return undefined;
  }
}
