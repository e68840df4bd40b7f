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
const madeAnew: ReadonlySet<string> = new Set(['host', 'expect']);

/** What a sandbox has no say in: who pays, for whom, by which way, and how long a body is that may be changed. */
const sandboxsOwn: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'ocp-apim-subscription-key',
  'cookie',
  'openai-organization',
  'openai-project',
  'forwarded',
  'via',
  'content-length',
  // Bytes must be readable here, to count tokens and to find a repeated key.
  'accept-encoding',
]);
const routing = /^(x-forwarded-|x-offsite-|x-real-ip$)/;

/** Tracing would tie the host's upstream account to what a sandbox invents. */
const tracing =
  /^(traceparent|tracestate|baggage|sentry-trace|b3|x-b3-.*|uber-trace-id|x-cloud-trace-context|x-datadog-.*|x-amzn-trace-id|newrelic|elastic-apm-traceparent)$/;

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

/** The headers of a model request that go on to the upstream: end to end, none a credential, none for tracing. */
export function toUpstream(headers: IncomingHttpHeaders): Record<string, string> {
  const passed = endToEnd(headers).filter(
    ([name]) => !madeAnew.has(name) && !sandboxsOwn.has(name) && !routing.test(name) && !tracing.test(name),
  );
  return Object.fromEntries(passed.map(([name, value]) => [name, [value].flat().join(', ')]));
}

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
