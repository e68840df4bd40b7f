import picomatch from 'picomatch';
import { pathLists } from '../bounds/sandbox.ts';

/**
 * Whether a path matches one of some globs. An agent makes paths on which that would take seconds, in which
 * nothing else of this process goes on: what has more characters or folders than {@link pathLists} allows is
 * not compared.
 *
 * @param unmatched what is said of such a path
 */
export function globMatcher(globs: readonly string[], unmatched: boolean): (path: string) => boolean {
  if (globs.length === 0) return () => false;
  // With `s`, `**` spans line breaks too.
  const matches = picomatch([...globs], { dot: true, flags: 's' });
  return (path) => (isLong(path) ? unmatched : matches(path));
}

function isLong(path: string): boolean {
  return (
    path.length > pathLists.bytes.matched ||
    path.split('/', pathLists.count.matchedFolders + 2).length > pathLists.count.matchedFolders + 1
  );
}
