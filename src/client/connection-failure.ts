import type { Quote } from './api-key.ts';
import { type CallContext, ConnectionFailure } from './errors.ts';

/**
 * Codes of Node and OpenSSL for a certificate that does not prove the host's identity. A retry does not
 * change that.
 */
const untrusted: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

const hints: Record<string, string> = {
  ECONNREFUSED: 'Is the service running there?',
  ENOTFOUND: 'Check the host name in its address, and the network.',
  EAI_AGAIN: 'Check the network: host names cannot be looked up.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'Does that port speak plain http?',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'Does that port speak plain http?',
};

/** The error of a connection that failed or broke, and whether a retry may succeed. */
export function connectionFailure(
  { error, sent, origin }: { error: Error; sent: boolean; origin: string },
  quote: Quote,
  context: CallContext,
): { error: ConnectionFailure; transient: boolean } {
  const codes = codesOf(error);
  const distrusted = codes.find((code) => untrusted.has(code));
  const described = quote(describe(error), 500);
  const failure = new ConnectionFailure(
    sent
      ? `the connection to ${origin} broke before the answer was complete: ${described}`
      : `cannot connect to ${origin}: ${described}`,
    {
      code: distrusted
        ? 'CLIENT_CERTIFICATE_UNTRUSTED'
        : sent
          ? 'CLIENT_CONNECTION_BROKEN'
          : 'CLIENT_UNREACHABLE',
      hint: distrusted
        ? 'Give the certificate of its authority as an extra CA file, or use the host name it was issued for.'
        : (codes.map((code) => hints[code]).find((hint) => hint !== undefined) ??
          'Check the network, the address and the proxy settings.'),
      // Not the error itself: undici keeps bytes of the answer in some errors, and the answer may repeat the
      // key.
      cause: Object.assign(new Error(described), { code: codes[0] }),
      sent,
      context,
    },
  );
  return { error: failure, transient: distrusted === undefined };
}

/**
 * Every code of an error, of its causes, and of its nested errors: IPv4 and IPv6 fail as one AggregateError.
 */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const inner = error instanceof AggregateError ? error.errors : [];
  const own = 'code' in error && typeof error.code === 'string' ? [error.code] : [];
  return [...own, ...[error.cause, ...inner].flatMap(codesOf)];
}

function describe(error: Error): string {
  if (error.message) return error.message;
  if (error instanceof AggregateError) return error.errors.map((one) => describe(one)).join('; ');
  return codesOf(error)[0] ?? error.name;
}
