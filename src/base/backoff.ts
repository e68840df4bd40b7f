export interface BackoffLimits {
  /** Milliseconds: the longest first wait. It doubles with each failure in a row. */
  first: number;
  /** Milliseconds: the longest wait of all. */
  longest: number;
}

/**
 * Milliseconds to wait after this many failures in a row (from 1). Uses full jitter, anything between zero
 * and the bound: clients that failed together do not come back together, and on average come back soonest.
 *
 * @param random returns a number from 0 (inclusive) to 1 (exclusive), or is {@link noJitter}
 */
export function backoff(failures: number, { first, longest }: BackoffLimits, random: () => number): number {
  return Math.round(random() * Math.min(longest, first * 2 ** Math.min(failures - 1, 30)));
}

/** For waits that must add up to a known time: each is as long as its bound. */
export const noJitter = () => 1;
