import type { DataSource, RecordReference, WatchState } from '../../model/data-source.ts';
import type { LedgerEvent, TrialFigures } from '../../model/shapes.ts';
import { keep, kept } from '../kept.ts';

/** Trials whose summaries are asked for at once: their keys must fit into a URL. */
const summariesAtOnce = 400;
/** Milliseconds until a lost connection is tried again. */
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
    summaries: (batch, trials, signal) =>
      json<TrialFigures[]>(
        `/batches/${batch}/summaries?trials=${trials.slice(0, summariesAtOnce).join(',')}`,
        signal,
      ),
    trial: (reference, signal) => json(`/trials/${reference.trial}?${attemptQuery(reference)}`, signal),
    value: async (reference, pointer, limit, signal) => {
      const query = attemptQuery(reference);
      query.set('pointer', pointer);
      if (limit !== undefined) query.set('limit', String(limit));
      return (await ask(`/trials/${reference.trial}/value?${query}`, signal)).text();
    },
    blob: async (sha256, signal) => (await ask(`/blobs/${sha256}`, signal)).blob(),
    watch: (listener, onState, signal) => void watch(ask, listener, onState, signal),
  };
}

function attemptQuery({ attempt }: RecordReference): URLSearchParams {
  return new URLSearchParams(attempt === undefined ? [] : [['attempt', String(attempt)]]);
}

/**
 * Reads events for as long as the page is visible. A browser opens few connections to one address, so that
 * hidden tabs must not keep one each.
 */
async function watch(
  ask: (path: string, signal: AbortSignal) => Promise<Response>,
  listener: (event: LedgerEvent) => void,
  onState: (state: WatchState) => void,
  signal: AbortSignal,
): Promise<void> {
  let missed = false;
  while (!signal.aborted) {
    if (document.hidden) await nextEvent(document, 'visibilitychange', signal);
    if (signal.aborted) return;
    const connection = new AbortController();
    const end = () => connection.abort();
    const endIfHidden = () => document.hidden && end();
    signal.addEventListener('abort', end);
    document.addEventListener('visibilitychange', endIfHidden);
    try {
      const { body } = await ask('/events', connection.signal);
      onState('live');
      // Events may have been missed in between, so pages load again.
      if (missed) listener({ batches: [], trials: [], missed: true });
      missed = true;
      if (body) for await (const event of readEvents(body)) listener(JSON.parse(event) as LedgerEvent);
    } catch {
      // Reported by the state, and tried again.
    } finally {
      signal.removeEventListener('abort', end);
      document.removeEventListener('visibilitychange', endIfHidden);
    }
    if (!signal.aborted && !connection.signal.aborted) {
      onState('lost');
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

function nextEvent(target: EventTarget, name: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    target.addEventListener(name, () => resolve(), { once: true, signal });
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The data of server-sent events. (EventSource cannot send a token.) Each event has one line of data. */
async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = `${rest}${value}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice('data: '.length);
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
