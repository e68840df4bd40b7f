import { isIP, isIPv6 } from 'node:net';
import { canonical } from './addresses.ts';

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
