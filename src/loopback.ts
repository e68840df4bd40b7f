import { isIPv4 } from 'node:net';

/**
 * Whether the host of a `URL` is this machine by its name or number. (`URL` has already brought numbers to
 * their usual form: 127.1 is 127.0.0.1 here.)
 */
export function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
