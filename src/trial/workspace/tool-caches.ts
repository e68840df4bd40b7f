import { posix } from 'node:path';
import { isBelow, nodeCaches, pythonCaches } from '../../record/tool-files.ts';

/**
 * Where the state that an agent left is graded: in a copy, from which caches can be left out, or in its
 * sandbox.
 */
export type GradedIn = 'fresh' | 'same';

/**
 * The caches of tools among protected files. Running tests writes them, so they are not protected, and they
 * are not carried to where the work is graded. In the agent's own sandbox nothing can be left out, so there
 * only the caches that verify does not read are unprotected. A glob that names such a folder protects it.
 *
 * @returns a function that says whether a path in the workspace is such a cache, or in one
 */
export function toolCaches(globs: readonly string[], gradedIn: GradedIn): (path: string) => boolean {
  if (globs.length === 0) return () => false;
  const folders = gradedIn === 'fresh' ? [...pythonCaches, ...nodeCaches] : pythonCaches;
  const names = folders.filter((folder) => !globs.some((glob) => glob.includes(posix.basename(folder))));
  return (path) => isBelow(path, names);
}
