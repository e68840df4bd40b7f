import picomatch from 'picomatch';
import { pathLists } from '../../bounds/sandbox.ts';

/**
 * Returns a function that says whether a path matches one of the globs. An agent can make paths for which
 * matching takes seconds and blocks this process. So a path with more characters or folders than {@link
 * pathLists} allows is not matched at all.
 *
 * @param unmatched the result for such a path
 */
export function globMatcher(globs: readonly string[], unmatched: boolean): (path: string) => boolean {
  if (globs.length === 0) return () => false;
  // With the flag `s`, `**` also matches line breaks.
  const matches = picomatch([...globs], { dot: true, flags: 's' });
  return (path) => (isLong(path) ? unmatched : matches(path));
}

function isLong(path: string): boolean {
  return (
    path.length > pathLists.bytes.matched ||
    path.split('/', pathLists.count.matchedFolders + 2).length > pathLists.count.matchedFolders + 1
  );
}
