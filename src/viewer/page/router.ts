import { useEffect, useState } from 'preact/hooks';

/** A place in the app: `#/trial/17?tab=changes`. All that a person chose is in it. */
export interface Place {
  path: string[];
  query: URLSearchParams;
}

type Query = Record<string, string | undefined>;

const listeners = new Set<() => void>();
addEventListener('hashchange', () => announce());

function announce(): void {
  for (const listener of listeners) listener();
}

function readPlace(): Place {
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

export function usePlace(): Place {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const update = () => setPlace(readPlace());
    listeners.add(update);
    update();
    return () => void listeners.delete(update);
  }, []);
  return place;
}

/** The address of a place. */
export function addressOf(path: string, query: Query = {}): string {
  const entries = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const written = new URLSearchParams(entries).toString();
  return `#${path}${written === '' ? '' : `?${written}`}`;
}

/** Goes to a place at once, so that the next key already concerns it: the browser's own event comes later. */
export function go(address: string): void {
  location.hash = address;
  announce();
}

/** Changes parts of the query without a new entry in the history. An empty value removes its part. */
export function setQuery(changes: Query): void {
  const { path, query } = readPlace();
  const all = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, '', addressOf(`/${path.map(encodeURIComponent).join('/')}`, all));
  announce();
}
