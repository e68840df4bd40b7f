import { isIPv6 } from 'node:net';
import { OffsiteError } from '../../base/offsite-error.ts';
import { type Authority, readAuthority } from './authority.ts';

/** The hosts that a sandbox may reach. */
export interface AllowList {
  allows(authority: Authority): boolean;
}

interface HostPattern extends Pick<Authority, 'host' | 'address'> {
  /** Whether it means the domains below the host. */
  below: boolean;
  /** Undefined if the pattern names none. */
  port: number | undefined;
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
  return {
    allows: ({ host, port, address }) =>
      rules.some((rule) => portsOf(rule).includes(port) && covers(rule, { host, address, below: false })),
  };
}

/** Whether a text is a pattern of hosts. */
export function isHostPattern(text: string): boolean {
  return readPattern(text) !== undefined;
}

/**
 * The part of a requested pattern that other patterns permit, as patterns. Empty if they do not permit all of
 * its hosts. A requested pattern without a port gets the ports that are permitted. Throws an input error for
 * a text that is not a pattern.
 */
export function permittedBy(patterns: readonly string[], asked: string): string[] {
  const wanted = ruleOf(asked);
  const permitting = patterns.map(ruleOf).filter((rule) => covers(rule, wanted));
  const { port } = wanted;
  if (port !== undefined) return permitting.some((rule) => portsOf(rule).includes(port)) ? [asked] : [];
  return [...new Set(permitting.map((rule) => printed({ ...wanted, port: rule.port })))];
}

/** Whether all hosts that are asked for match a rule, whatever the port. */
function covers(rule: Omit<HostPattern, 'port'>, asked: Omit<HostPattern, 'port'>): boolean {
  if (rule.address !== asked.address) return false;
  if (rule.below) return asked.host.endsWith(`.${rule.host}`) || (asked.below && asked.host === rule.host);
  return !asked.below && asked.host === rule.host;
}

function portsOf({ port }: HostPattern): readonly number[] {
  return port === undefined ? usualPorts : [port];
}

function printed({ host, below, address, port }: HostPattern): string {
  const name = address && isIPv6(host) ? `[${host}]` : host;
  return `${below ? '*.' : ''}${name}${port === undefined ? '' : `:${port}`}`;
}

function readPattern(pattern: string): HostPattern | undefined {
  const below = pattern.startsWith('*.');
  const plain = below ? pattern.slice(2) : pattern;
  const named = readAuthority(isIPv6(plain) ? `[${plain}]` : plain, 443);
  if (!named || (below && named.address)) return undefined;
  const hasPort = /[^:]:\d+$/.test(plain) && !isIPv6(plain);
  return { ...named, below, port: hasPort ? named.port : undefined };
}

function ruleOf(pattern: string): HostPattern {
  const read = readPattern(pattern);
  if (read) return read;
  throw new OffsiteError(`${JSON.stringify(pattern)} is not a host pattern for the allow-list`, {
    code: 'HOST_PATTERN_INVALID',
    kind: 'input',
    hint: 'Write registry.example, *.example:443, 192.0.2.7:8080, [::1]:443. For any host: network: open.',
  });
}
