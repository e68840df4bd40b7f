import type { IncomingMessage } from 'node:http';
import type { Wire } from '../suite/model-config.ts';
import { relayPort } from './relay/relay.ts';
import type { Endpoint, PathTarget, WireDescriptor } from './wires/wire-descriptor.ts';
import { allWires, usualWire, versions } from './wires/wire-table.ts';

/** What a request from the relay asks for. */
export type Route =
  /**
   * An answer, or a count of tokens. `path` is one of the wire's paths without /v1, with the known part of
   * the query.
   */
  | {
      to: 'model';
      wire: Wire;
      purpose: 'answer' | 'count';
      path: string;
      /** What the path says, if the wire's bodies do not. */
      inPath?: PathTarget;
    }
  | { to: 'models'; wire: Wire; name: string | undefined }
  /** `HEAD /`, which some clients send to open their connection early. */
  | { to: 'greeting' }
  /** A plain request through the proxy. */
  | { to: 'proxy'; authority: string; path: string }
  | { to: 'nothing'; wire: Wire; status: 400 | 404; why: string };

const endpoints: ReadonlyMap<string, Endpoint & { wire: Wire }> = new Map(
  allWires
    .filter(({ targetOf }) => !targetOf)
    .flatMap(({ name, endpoints }) =>
      endpoints.map((endpoint) => [endpoint.path, { ...endpoint, wire: name }] as const),
    ),
);

/** What base URLs of clients end with. */
const anyVersion = startOf(versions);
const usualVersion = startOf([usualWire.version]);

function startOf(names: readonly string[]): RegExp {
  return new RegExp(`^/(?:${names.join('|')})(?=/)`);
}

/** Own addresses: some clients send requests for these through the proxy too. */
const ownAuthorities: ReadonlySet<string> = new Set([`127.0.0.1:${relayPort}`, `localhost:${relayPort}`]);

/** Compares paths as they were sent: an encoded path, or one with dots, matches nothing. Ignores `Host`. */
export function routeOf({ method = 'GET', url = '/', headers }: IncomingMessage): Route {
  if (url.startsWith('/')) return ownRoute(method, url, headers);
  const [, authority, rest = ''] = /^http:\/\/([^/?#@\\\s]+)([/?][^#]*)?$/i.exec(url) ?? [];
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  if (authority === undefined) {
    const why = 'the target is neither a path nor an http:// URL';
    return { to: 'nothing', wire: guessWire('', headers), status: 400, why };
  }
  if (ownAuthorities.has(authority.toLowerCase())) return ownRoute(method, path, headers);
  return { to: 'proxy', authority, path };
}

function ownRoute(method: string, url: string, headers: IncomingMessage['headers']): Route {
  const [full = '/', ...rest] = url.split('?');
  const query = rest.join('?').split('&');
  const path = full.replace(anyVersion, '');
  if (method === 'HEAD' && path === '/') return { to: 'greeting' };
  const pathed = ofPath(path);
  if (pathed) return pathedRoute(pathed, method, full, query);
  const known = endpoints.get(path);
  const wire = known?.wire ?? guessWire(full, headers);
  if (known) {
    const { writeCount, parameter } = known;
    const purpose = writeCount ? 'count' : 'answer';
    const isKnown =
      parameter !== undefined && query.filter((one) => isOf(parameter, one)).join('&') === parameter;
    if (method === 'POST')
      return { to: 'model', wire, purpose, path: isKnown ? `${path}?${parameter}` : path };
    return { to: 'nothing', wire, status: 404, why: `${full} takes POST, not ${method}` };
  }
  const listed = method === 'GET' ? /^\/models(?:\/(.+))?$/.exec(path) : null;
  if (listed) return { to: 'models', wire, name: decoded(listed[1]) };
  return { to: 'nothing', wire, status: 404, why: `there is no ${method} ${full.slice(0, 200)} here` };
}

interface Pathed {
  wire: WireDescriptor;
  target: PathTarget;
}

/** The wire of a path that names its model. */
function ofPath(path: string): Pathed | undefined {
  for (const wire of allWires) {
    const target = wire.targetOf?.(path);
    if (target) return { wire, target: { ...target, model: decoded(target.model) ?? target.model } };
  }
  return undefined;
}

function pathedRoute(
  { wire: { name: wire, streamQuery }, target }: Pathed,
  method: string,
  full: string,
  query: readonly string[],
): Route {
  const nothing = { to: 'nothing', wire } as const;
  if (method !== 'POST')
    return { ...nothing, status: 404, why: `${full.slice(0, 200)} takes POST, not ${method}` };
  if (target.streamed && streamQuery !== undefined && !query.includes(streamQuery))
    return { ...nothing, status: 400, why: `a stream is sent as events, with ?${streamQuery}` };
  return { to: 'model', wire, purpose: target.purpose, path: full.slice(0, 300), inPath: target };
}

/** Whether a part of a query has the name of a parameter, with any value. */
function isOf(parameter: string, part: string): boolean {
  return part.split('=')[0] === parameter.split('=')[0];
}

/** Guesses the wire whose error shape the client understands. */
function guessWire(path: string, headers: IncomingMessage['headers']): Wire {
  const below = path.replace(usualVersion, '');
  const { name } =
    allWires.find((wire) => wire.version !== usualWire.version && below.startsWith(`/${wire.version}/`)) ??
    allWires.find(({ endpoints: [{ path: own }] }) => below.startsWith(own)) ??
    allWires.find(({ ownHeaders }) => ownHeaders.some((header) => headers[header] !== undefined)) ??
    usualWire;
  return name;
}

/** Model names may contain slashes, which some clients encode. */
function decoded(name: string | undefined): string | undefined {
  if (name === undefined || !/%[0-9a-f]{2}/i.test(name)) return name;
  try {
    return decodeURIComponent(name);
  } catch {
    // Not UTF-8: no model has this name, and the answer will say so.
    return name;
  }
}
