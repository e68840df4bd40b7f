import { BlockList, isIP, isIPv6 } from 'node:net';
import { inputError } from '../../base/offsite-error.ts';

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
  throw inputError(
    'HOST_PATTERN_INVALID',
    `${JSON.stringify(pattern)} is not a host pattern for the allow-list`,
    {
      hint: 'Write registry.example, *.example:443, 192.0.2.7:8080, [::1]:443. For any host: network: open.',
    },
  );
}

/** A requested host and port, in canonical spelling. */
export interface Authority {
  /** A name in lower case without a last dot, or an address without brackets. */
  host: string;
  port: number;
  address: boolean;
}

const name = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/;

/**
 * Reads `host:port` or `[::1]:port`. The port is optional if there is a usual one. Undefined for everything
 * else, such as user names and paths.
 */
export function readAuthority(text: string, usualPort: number | undefined): Authority | undefined {
  const [, rawHost, rawPort] = /^(\[[0-9a-f:.]+\]|[^\s:@/?#[\]\\%]+)(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const port = rawPort === undefined ? usualPort : Number(rawPort);
  if (rawHost === undefined || port === undefined || port < 1 || port > 65_535) return undefined;
  // Normalizes 127.1, 2130706433 and 0x7f000001 to 127.0.0.1, as connecting would.
  const url = URL.parse(`http://${rawHost}/`);
  if (!url) return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (isIP(host)) return { host: canonical(host), port, address: true };
  return name.test(host) ? { host, port, address: false } : undefined;
}

/** The `Host` header of a request to an authority: exactly the name that was checked. */
export function hostHeader({ host, port, address }: Authority, usualPort: number): string {
  const shown = address && isIPv6(host) ? `[${host}]` : host;
  return port === usualPort ? shown : `${shown}:${port}`;
}

/**
 * Networks that are not the public Internet (IANA's special-purpose registries), and addresses where clouds
 * serve their credentials.
 */
const notPublic = {
  ipv4: [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/3',
    // Azure's own services on every virtual machine.
    '168.63.129.16/32',
  ],
  ipv6: [
    // Unspecified, loopback, and IPv4 inside IPv6: compatible, mapped, translated, 6to4, Teredo.
    '::/96',
    '::ffff:0:0/96',
    '::ffff:0:0:0/96',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '2001::/32',
    '2002::/16',
    '100::/64',
    '2001:db8::/32',
    '3fff::/20',
    'fc00::/7',
    'fe80::/9',
    'ff00::/8',
  ],
} as const;

/** Whether an address (no brackets, no zone) belongs to the public Internet. */
export function isPublic(address: string): boolean {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  const refused = new BlockList();
  for (const subnet of notPublic[family]) {
    const [network = '', length] = subnet.split('/');
    refused.addSubnet(network, Number(length), family);
  }
  return !address.includes('%') && !refused.check(address, family);
}

/** One spelling for each address. */
export function canonical(address: string): string {
  return isIPv6(address) ? new URL(`http://[${address}]/`).hostname.slice(1, -1) : address;
}
