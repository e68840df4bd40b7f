import { createContext } from 'preact';
import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { DataSource } from '../../model/data-source.ts';
import type { LedgerChanges } from '../../model/shapes.ts';

type Listener = (changes: LedgerChanges) => void;

/** The data source with the pages that listen to it. */
export interface Data {
  source: DataSource;
  listeners: Set<Listener>;
}

export const DataContext = createContext<Data | undefined>(undefined);

export function useData(): Data {
  const data = useContext(DataContext);
  if (!data) throw new Error('the page has no data source');
  return data;
}

export interface Loaded<Value> {
  /** The value for the key, or the last one while a newer one loads. */
  value?: Value | undefined;
  error?: Error | undefined;
}

/**
 * Loads a value, and loads it again after changes that concern it.
 *
 * @param key loads again when it changes; undefined loads nothing
 * @param concerns whether changes of the ledger change the value
 */
export function useLoaded<Value>(
  key: string | undefined,
  load: (source: DataSource, signal: AbortSignal) => Promise<Value>,
  concerns: (changes: LedgerChanges) => boolean = () => false,
): Loaded<Value> {
  const { source, listeners } = useData();
  const [loaded, setLoaded] = useState<Loaded<Value> & { key?: string | undefined }>({});
  const current = useRef({ load, concerns });
  current.current = { load, concerns };

  useEffect(() => {
    if (key === undefined) return;
    const ended = new AbortController();
    const { signal } = ended;
    let isLoading = false;
    let isStale = false;
    const start = async () => {
      isLoading = true;
      isStale = false;
      try {
        const value = await current.current.load(source, signal);
        if (!signal.aborted) setLoaded({ key, value });
      } catch (error) {
        // What was loaded before is still worth reading.
        if (!signal.aborted)
          setLoaded((last) => ({ ...(last.key === key && last), key, error: error as Error }));
      }
      isLoading = false;
      // Changes come faster than a large page loads: one more load covers all of them.
      if (isStale && !signal.aborted) setTimeout(() => !signal.aborted && void start(), reloadPauseMs);
    };
    const listener = (changes: LedgerChanges) => {
      if (!current.current.concerns(changes)) return;
      if (isLoading || isStale) isStale = true;
      else void start();
    };
    void start();
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      ended.abort();
    };
  }, [key, source, listeners]);

  return loaded.key === key ? loaded : {};
}

const reloadPauseMs = 500;
