import { useEffect, useState } from 'preact/hooks';

/** Whether a media query matches now. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const update = () => setMatches(list.matches);
    list.addEventListener('change', update);
    update();
    return () => list.removeEventListener('change', update);
  }, [query]);
  return matches;
}

/** How often the colours have changed, for what draws by itself. */
export function useThemeChanges(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const again = () => setChanges((count) => count + 1);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', again);
    addEventListener('offsite-theme', again);
    return () => {
      dark.removeEventListener('change', again);
      removeEventListener('offsite-theme', again);
    };
  }, []);
  return changes;
}

/** Rows have two lines below this width. */
export const narrow = '(max-width: 45rem)';
