import type { IncomingHttpHeaders } from 'node:http';

/** Of one connection only (RFC 9110, 7.6.1). */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Made anew for the onward request. */
const madeAnew: ReadonlySet<string> = new Set(['host', 'expect', 'content-length']);

/** Names whose account it is, and other business between the upstream and this host. */
const hostsOwn: ReadonlySet<string> = new Set([
  // A repeated key may be taken out of the body.
  'content-length',
  'set-cookie',
  'alt-svc',
  'location',
  'strict-transport-security',
  'www-authenticate',
  'openai-organization',
  'openai-project',
  'anthropic-organization-id',
]);

/** The headers of a model's answer that go on to the sandbox. */
export function toSandbox(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(endToEnd(headers).filter(([name]) => !hostsOwn.has(name)));
}

/** The headers of a plain request through the allow-list's proxy. */
export function toHost(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(endToEnd(headers).filter(([name]) => !madeAnew.has(name)));
}

/** Without those of one hop, and those that `Connection` names as such. */
export function endToEnd(headers: IncomingHttpHeaders): [string, string | string[]][] {
  const named = headers.connection?.toLowerCase().split(/\s*,\s*/) ?? [];
  return Object.entries(headers).filter(
    (entry): entry is [string, string | string[]] =>
      entry[1] !== undefined && !hopByHop.has(entry[0]) && !named.includes(entry[0]),
  );
}
