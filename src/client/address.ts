import { isLoopback } from '../base/foreign-traffic.ts';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';

/** The checked address of the service. */
export interface Address {
  /** `https://evals.example`, for the connection and for messages. */
  origin: string;
  /** The path of an operation, below the base address's own path. */
  pathOf(operation: string): string;
  /** The path of the service's OpenAPI document. */
  descriptionPath: string;
  protocol: 'http:' | 'https:';
  /** Whether the host is this machine, by name or number. Such a host is never reached through a proxy. */
  loopback: boolean;
}

/**
 * Reads the base address of a service. Throws an input error if it is not an http(s) address, if it has a
 * user, query or fragment, and if it is plain http beyond this machine without `insecureHttp`.
 */
export function parseAddress(url: string, insecureHttp: boolean): Address {
  const parsed = URL.parse(url);
  if (!parsed || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) {
    throw invalid('the address of the Eval Service is not an http or https URL');
  }
  // Not printed: the text before the @ may be a secret.
  if (parsed.username || parsed.password) {
    throw invalid('the address of the Eval Service carries a user name or password');
  }
  if (parsed.search || parsed.hash)
    throw invalid('the address of the Eval Service carries a query or fragment');

  const loopback = isLoopback(parsed.hostname);
  if (parsed.protocol === 'http:' && !loopback && !insecureHttp) {
    throw inputError(
      'CLIENT_INSECURE_HTTP',
      `${parsed.origin} is plain http: the API key would be sent unencrypted`,
      { hint: 'Use https, or allow it: service.insecureHttp in offsite.yaml.' },
    );
  }
  const base = parsed.pathname.replace(/\/+$/, '');
  if (base.endsWith('/v1'))
    throw invalid('the address of the Eval Service ends in /v1, which is added to it');
  return {
    origin: parsed.origin,
    pathOf: (operation) => `${base}/v1/${operation}`,
    descriptionPath: `${base}/openapi.json`,
    protocol: parsed.protocol,
    loopback,
  };
}

function invalid(message: string): OffsiteError {
  return inputError('CLIENT_URL_INVALID', message, {
    hint: 'Use its base address, such as https://evals.example.',
  });
}
