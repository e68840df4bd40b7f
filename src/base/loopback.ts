import { isIPv4 } from 'node:net';

/**
 * Whether the hostname of a `URL` is this machine, by name or number. (`URL` already normalizes numbers:
 * 127.1 is 127.0.0.1 here.)
 */
export function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
