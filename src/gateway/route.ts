import type { IncomingHttpHeaders } from 'node:http2';
import type { Wire } from '../suite/model-config.ts';

/** What a request that came over the relay asks for. */
export type Route =
  /** An answer, or a count of tokens. `path` has no /v1 and keeps its query. */
  | { to: 'model'; wire: Wire; purpose: 'answer' | 'count'; path: string }
  | { to: 'models'; wire: Wire; name: string | undefined }
  /** `HEAD /`, by which some clients open their connection ahead of need. */
  | { to: 'greeting' }
  | { to: 'tunnel'; authority: string }
  | { to: 'proxy'; authority: string }
  | { to: 'nothing'; wire: Wire; why: string };

const served: Record<string, { wire: Wire; purpose: 'answer' | 'count' }> = {
  '/chat/completions': { wire: 'openai-chat', purpose: 'answer' },
  '/responses': { wire: 'openai-responses', purpose: 'answer' },
  '/responses/input_tokens': { wire: 'openai-responses', purpose: 'count' },
  '/messages': { wire: 'anthropic-messages', purpose: 'answer' },
  '/messages/count_tokens': { wire: 'anthropic-messages', purpose: 'count' },
};

/** The header by which the relay, and only it, marks an absolute-form request of a proxy's client. */
const proxyMark = 'x-offsite-proxy';

/** Paths are compared as they were sent: what is encoded or has dots in it is no path of ours. */
export function routeOf(headers: IncomingHttpHeaders): Route {
  const method = headers[':method'] ?? 'GET';
  if (method === 'CONNECT') return { to: 'tunnel', authority: headers[':authority'] ?? '' };
  if (headers[proxyMark] === '1') return { to: 'proxy', authority: headers[':authority'] ?? '' };

  const [full = '/', ...rest] = (headers[':path'] ?? '/').split('?');
  const path = full.startsWith('/v1/') ? full.slice(3) : full;
  if (method === 'HEAD' && path === '/') return { to: 'greeting' };
  const known = Object.hasOwn(served, path) ? served[path] : undefined;
  const wire = known?.wire ?? guessWire(path, headers);
  if (known) {
    if (method !== 'POST') return { to: 'nothing', wire, why: `${full} takes POST, not ${method}` };
    return { to: 'model', ...known, path: [path, ...rest].join('?') };
  }
  const listed = method === 'GET' ? /^\/models(?:\/(.+))?$/.exec(path) : null;
  if (listed) return { to: 'models', wire, name: decoded(listed[1]) };
  return { to: 'nothing', wire, why: `there is no ${method} ${full.slice(0, 200)} here` };
}

/** Whose error shape a client will understand. */
function guessWire(path: string, headers: IncomingHttpHeaders): Wire {
  if (path.startsWith('/messages')) return 'anthropic-messages';
  if (path.startsWith('/responses')) return 'openai-responses';
  const anthropic = headers['anthropic-version'] !== undefined || headers['x-api-key'] !== undefined;
  return anthropic ? 'anthropic-messages' : 'openai-chat';
}

/** Model names may hold slashes, which clients encode or not. */
function decoded(name: string | undefined): string | undefined {
  if (name === undefined || !/%[0-9a-f]{2}/i.test(name)) return name;
  try {
    return decodeURIComponent(name);
  } catch {
    // Not UTF-8: no model is named so, and the answer will say it.
    return name;
  }
}
