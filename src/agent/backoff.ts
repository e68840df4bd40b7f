export interface BackoffLimits {
  /** Milliseconds: the longest first wait. It doubles with each failure in a row. */
  first: number;
  /** Milliseconds: the longest of all. */
  longest: number;
}

/**
 * Milliseconds to wait after so many failures in a row (from 1). Full jitter, anything between nothing and
 * the bound: those who failed together do not come back together, and on the whole come back soonest.
 *
 * @param random from 0 (inclusive) to 1 (exclusive)
 */
export function backoff(failures: number, { first, longest }: BackoffLimits, random: () => number): number {
  return Math.round(random() * Math.min(longest, first * 2 ** Math.min(failures - 1, 30)));
}
