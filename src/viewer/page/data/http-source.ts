import type { DataSource, RecordReference, WatchState } from '../../model/data-source.ts';
import type { LedgerChanges } from '../../model/shapes.ts';
import { keep, kept } from '../kept.ts';

/** Milliseconds until a lost server is asked again. */
const retryMs = 2_000;

/** The data of a running `offsite view`. */
export function httpSource(token: string): DataSource {
  const headers = { authorization: `Bearer ${token}` };

  async function ask(path: string, signal?: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`/api${path}`, { headers, signal: signal ?? null });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Error('`offsite view` does not answer. Is it still running?');
    }
    if (response.ok) return response;
    const { message } = (await response.json().catch(() => ({}))) as { message?: string };
    throw new Error(message ?? `The server answered ${response.status}.`);
  }

  const json = async <Answer>(path: string, signal?: AbortSignal) =>
    (await (await ask(path, signal)).json()) as Answer;

  return {
    batches: (signal) => json('/batches', signal),
    batch: (key, signal) => json(`/batches/${key}`, signal),
    trial: (reference, signal) => json(`/trials/${reference.trial}?${attemptQuery(reference)}`, signal),
    value: async (reference, pointer, limit, signal) => {
      const query = attemptQuery(reference);
      query.set('pointer', pointer);
      if (limit !== undefined) query.set('limit', String(limit));
      return (await ask(`/trials/${reference.trial}/value?${query}`, signal)).text();
    },
    blob: async (sha256, signal) => (await ask(`/blobs/${sha256}`, signal)).blob(),
    watch: (listener, onState, signal) => void watch(json, listener, onState, signal),
  };
}

function attemptQuery({ attempt }: RecordReference): URLSearchParams {
  return new URLSearchParams(attempt === undefined ? [] : [['attempt', String(attempt)]]);
}

/**
 * Asks for changes for as long as the page is visible. A browser opens few connections to one address, so
 * that hidden tabs must not keep one each.
 */
async function watch(
  json: <Answer>(path: string, signal: AbortSignal) => Promise<Answer>,
  listener: (changes: LedgerChanges) => void,
  onState: (state: WatchState) => void,
  signal: AbortSignal,
): Promise<void> {
  let asked = new AbortController();
  const shown = () =>
    new Promise<void>((resolve) => {
      document.addEventListener('visibilitychange', () => resolve(), { once: true });
    });
  document.addEventListener('visibilitychange', () => document.hidden && asked.abort(), { signal });
  let after = '';
  // The first answer after a loss must not wait for a change: it shows that the server is back.
  let wait = '';
  while (!signal.aborted) {
    if (document.hidden) await shown();
    asked = new AbortController();
    try {
      const changes = await json<LedgerChanges>(
        `/changes${after}${wait}`,
        AbortSignal.any([signal, asked.signal]),
      );
      onState('live');
      if (changes.batches.length + changes.trials.length > 0) listener(changes);
      after = `?after=${changes.last}`;
      wait = '';
    } catch {
      if (signal.aborted || asked.signal.aborted) continue;
      // Asked again for the same changes, so that none is missed.
      onState('lost');
      wait = after && '&wait=0';
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

const key = 'offsite-token';

/**
 * Takes the token out of the address, so that it is not in bookmarks and screenshots, and keeps it for the
 * tabs of this address. Undefined if there is none. A token is good until `offsite view` ends.
 */
export function takeToken(): string | undefined {
  const [, given] = /^#token=([\w-]+)/.exec(location.hash) ?? [];
  if (given === undefined) return kept(key);
  history.replaceState(null, '', '#/');
  keep(key, given);
  return given;
}
