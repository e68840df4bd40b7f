/** The folders in which Python keeps bytecode, and in which tools of Python keep what they can make again. */
export const pythonCaches: readonly string[] = ['__pycache__', '.pytest_cache', '.mypy_cache', '.ruff_cache'];

/** The same for tools of Node. Tests may run what is in them in place of the source. */
export const nodeCaches: readonly string[] = [
  'node_modules/.cache',
  'node_modules/.vite',
  'node_modules/.vitest',
];

/** Whether a path is a folder of one of these names, or in one, anywhere in the workspace. */
export function isBelow(path: string, names: readonly string[]): boolean {
  return names.some((name) => `/${path}/`.includes(`/${name}/`));
}

/**
 * Separates the paths that say something about the work from those of git and of caches, which only repeat
 * it.
 */
export function partPaths<File>(files: readonly File[], pathOf: (file: File) => string) {
  const parted = { own: [] as File[], git: [] as File[], caches: [] as File[] };
  for (const file of files) {
    const path = pathOf(file);
    if (isBelow(path, ['.git'])) parted.git.push(file);
    else if (isBelow(path, [...pythonCaches, ...nodeCaches])) parted.caches.push(file);
    else parted.own.push(file);
  }
  return parted;
}
