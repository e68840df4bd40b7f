import { projectFiles } from '../../bounds/anyone.ts';
import { filesToRead } from '../project/look-at-project.ts';
import type { ProjectFiles } from '../project/project-files.ts';

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
