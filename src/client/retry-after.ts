import type { IncomingHttpHeaders } from 'node:http';

/**
 * How long an answer asks to wait, in milliseconds; undefined if it does not say, or not in a readable form.
 * `Retry-After` is seconds or a date. A date is compared with the answer's own `Date`, so that the clocks may
 * differ.
 */
export function retryAfter(headers: IncomingHttpHeaders, now: number): number | undefined {
  const value = headers['retry-after']?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const until = Date.parse(value);
  if (Number.isNaN(until)) return undefined;
  const serviceNow = Date.parse(headers.date ?? '');
  return Math.max(0, until - (Number.isNaN(serviceNow) ? now : serviceNow));
}
