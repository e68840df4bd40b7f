import type { IncomingHttpHeaders } from 'node:http';
import { words } from './wires/lenient.ts';
import { allWires } from './wires/wire-table.ts';

/** Headers of a single connection (RFC 9110, 7.6.1). */
const hopByHop = words(`
  connection keep-alive proxy-authenticate proxy-authorization proxy-connection te
  trailer transfer-encoding upgrade http2-settings`);

/** Headers that the forwarded request sets itself. */
const replaced: ReadonlySet<string> = new Set(['host', 'expect', 'content-length']);

/** Headers that name the account, or concern only the upstream and this host. */
const hostsOwn: ReadonlySet<string> = new Set([
  // Redaction may change the length of the body.
  'content-length',
  'set-cookie',
  'alt-svc',
  'location',
  'strict-transport-security',
  'www-authenticate',
  ...allWires.flatMap(({ accountHeaders }) => accountHeaders),
]);

/** The headers of a model's answer that are sent to the sandbox. */
export function toSandbox(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(endToEnd(headers).filter(([name]) => !hostsOwn.has(name)));
}

/** The headers of a plain request that the allow-list's proxy sends on. */
export function toHost(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(endToEnd(headers).filter(([name]) => !replaced.has(name)));
}

/** The headers without hop-by-hop ones, including those that `Connection` names. */
export function endToEnd(headers: IncomingHttpHeaders): [string, string | string[]][] {
  const named = headers.connection?.toLowerCase().split(/\s*,\s*/) ?? [];
  return Object.entries(headers).filter(
    (entry): entry is [string, string | string[]] =>
      entry[1] !== undefined && !hopByHop.has(entry[0]) && !named.includes(entry[0]),
  );
}
