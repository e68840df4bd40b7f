import { isIPv6 } from 'node:net';
import { OffsiteError } from '../../offsite-error.ts';
import { type Authority, readAuthority } from './authority.ts';

/** The hosts that a sandbox may reach. */
export interface AllowList {
  allows(authority: Authority): boolean;
}

/** The ports of a pattern that names none. */
const usualPorts: readonly number[] = [443, 80];

/**
 * Patterns are `registry.example` or `*.example` (the domains below it, not itself) for ports 443 and 80, or
 * with `:PORT` for that port only. An address is allowed only if a pattern names it. Throws an input error
 * for any other pattern.
 */
export function allowList(patterns: readonly string[]): AllowList {
  const rules = patterns.map(ruleOf);
  return { allows: (authority) => rules.some((rule) => rule(authority)) };
}

function ruleOf(pattern: string): (asked: Authority) => boolean {
  const below = pattern.startsWith('*.');
  const plain = below ? pattern.slice(2) : pattern;
  const named = readAuthority(isIPv6(plain) ? `[${plain}]` : plain, 443);
  if (!named || (below && named.address)) {
    throw new OffsiteError(`${JSON.stringify(pattern)} is not a host pattern for the allow-list`, {
      code: 'HOST_PATTERN_INVALID',
      kind: 'input',
      hint: 'Write registry.example, *.example:443, 192.0.2.7:8080, [::1]:443. For any host: network: open.',
    });
  }
  const ports = /[^:]:\d+$/.test(plain) && !isIPv6(plain) ? [named.port] : usualPorts;
  return ({ host, port, address }) => {
    if (!ports.includes(port) || address !== named.address) return false;
    return below ? host.endsWith(`.${named.host}`) : host === named.host;
  };
}
