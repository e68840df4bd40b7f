import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { inputError } from '../base/offsite-error.ts';
import type { Address } from './address.ts';
import { exchange, type Transport } from './exchange.ts';
import type { ClientOptions } from './options.ts';

export interface Connections extends AsyncDisposable {
  /** Keeps connections for later requests. */
  kept: Dispatcher;
  /**
   * Opens a new connection for every request. The service may have just closed a kept one, which shows only
   * after the request is written. Then it is unknown whether the service did an operation that must not be
   * repeated.
   */
  fresh: Dispatcher;
}

/** Sends requests over HTTP. Opens nothing yet. */
export function httpTransport(
  address: Address,
  options: Pick<ClientOptions, 'caBundle' | 'env'>,
  connectMs: number,
): Transport {
  const { kept, fresh, [Symbol.asyncDispose]: close } = openConnections(address, options, connectMs);
  return {
    origin: address.origin,
    exchange: (request, { repeatable, ...limits }) => exchange(repeatable ? kept : fresh, request, limits),
    [Symbol.asyncDispose]: close,
  };
}

/**
 * The connections to the service: direct, or through the proxy that `env` names for it. Opens nothing yet.
 */
export function openConnections(
  address: Pick<Address, 'protocol' | 'loopback'>,
  { caBundle, env = {} }: Pick<ClientOptions, 'caBundle' | 'env'>,
  connectMs: number,
): Connections {
  const secureContext = address.protocol === 'https:' ? trusting(caBundle) : undefined;
  const connect = { timeout: connectMs, ...(secureContext && { secureContext }) };
  const settings = {
    connect,
    requestTls: connect,
    connectTimeout: connectMs,
    allowH2: false,
    // Undici's own limits (300 s) are off; the attempt has a deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const proxy = address.loopback ? undefined : proxyOf(address, env);
  const open = (pipelining: 0 | 1) =>
    proxy
      ? new EnvHttpProxyAgent({ ...settings, ...proxy, pipelining })
      : new Agent({ ...settings, pipelining });
  const kept = open(1);
  // In undici, 0 means no keep-alive.
  const fresh = open(0);
  return {
    kept,
    fresh,
    async [Symbol.asyncDispose]() {
      await Promise.all([kept.destroy(), fresh.destroy()]);
    },
  };
}

/**
 * The certificate authorities of the system, of Node and of the caller; read once, because undici would parse
 * them for every connection.
 */
function trusting(caBundle: string | Buffer | undefined): SecureContext {
  const authorities = [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
  if (caBundle !== undefined) {
    try {
      // OpenSSL silently skips text that is not a certificate.
      new X509Certificate(caBundle);
    } catch (cause) {
      throw inputError('CLIENT_CA_INVALID', 'the extra CA file holds no PEM certificate', {
        hint: 'It starts with -----BEGIN CERTIFICATE-----.',
        cause,
      });
    }
    authorities.push(caBundle.toString());
  }
  return createSecureContext({ ca: authorities });
}

/**
 * The proxy settings of an environment as undici takes them; undefined if it names no proxy for this
 * protocol. Sets every value, even if empty: undici reads the process's environment for missing ones.
 */
function proxyOf({ protocol }: Pick<Address, 'protocol'>, env: NodeJS.ProcessEnv) {
  const variable = protocol === 'https:' ? 'https_proxy' : 'http_proxy';
  const value = env[variable] || env[variable.toUpperCase()];
  if (!value) return undefined;
  // Like curl, reads `proxy:3128` as http.
  const url = URL.parse(value.includes('://') ? value : `http://${value}`);
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    // The value is not shown: it may contain a password.
    throw inputError(
      'CLIENT_PROXY_INVALID',
      `${variable.toUpperCase()} is not the address of an http or https proxy`,
      { hint: 'It looks like http://proxy.example:3128.' },
    );
  }
  return {
    httpProxy: protocol === 'http:' ? url.href : '',
    httpsProxy: protocol === 'https:' ? url.href : '',
    noProxy: env.no_proxy || env.NO_PROXY || '',
  };
}
