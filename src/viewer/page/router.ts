import { useEffect, useState } from 'preact/hooks';

/** A route of the page: `#/trial/17?tab=changes`. All that a person chose is in it. */
export interface Route {
  path: string[];
  query: URLSearchParams;
}

type Query = Record<string, string | undefined>;

const listeners = new Set<() => void>();
addEventListener('hashchange', () => announce());

function announce(): void {
  for (const listener of listeners) listener();
}

function readRoute(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#/, '').split(/\?(.*)/s);
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decoded),
    query: new URLSearchParams(query),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const update = () => setRoute(readRoute());
    listeners.add(update);
    update();
    return () => void listeners.delete(update);
  }, []);
  return route;
}

/** The address of a route. */
export function addressOf(path: string, query: Query = {}): string {
  const entries = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const written = new URLSearchParams(entries).toString();
  return `#${path}${written === '' ? '' : `?${written}`}`;
}

/**
 * Goes to an address at once, so that the next key press already applies there: the browser's own event comes
 * later.
 */
export function go(address: string): void {
  location.hash = address;
  announce();
}

/** Changes parts of the query without a new entry in the history. An empty value removes its part. */
export function setQuery(changes: Query): void {
  const { path, query } = readRoute();
  const all = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, '', addressOf(`/${path.map(encodeURIComponent).join('/')}`, all));
  announce();
}
