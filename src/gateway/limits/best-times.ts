/**
 * The shortest times to the first token, in milliseconds, for each size of request. A long conversation takes
 * longer to read than a short one, so sizes are kept apart: each is a power of two of bytes.
 */
export interface BestTimes {
  /** When `recent` began, epoch milliseconds. */
  since: number;
  recent: Record<string, number>;
  /** The best times of the previous period. A best time counts until the end of the period after its own. */
  before: Record<string, number>;
}

/** The length of a period in milliseconds. Best times expire because a server may become slower. */
const termMs = 600_000;

export function noTimes(now: number): BestTimes {
  return { since: now, recent: {}, before: {} };
}

/** Notes a time to the first token, and returns the best one for requests of that size. */
export function bestOf(times: BestTimes, requestBytes: number, firstMs: number, now: number): number {
  if (Math.abs(now - times.since) > termMs) {
    times.before = times.recent;
    times.recent = {};
    times.since = now;
  }
  const size = String(Math.floor(Math.log2(Math.max(1, requestBytes))));
  const recent = Math.min(times.recent[size] ?? firstMs, firstMs);
  times.recent[size] = recent;
  return Math.min(recent, times.before[size] ?? recent);
}
