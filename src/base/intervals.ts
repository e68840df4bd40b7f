/** Milliseconds covered by at least one of the intervals. */
export function unionOf(intervals: readonly { startedAt: number; finishedAt: number }[]): number {
  let covered = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const { startedAt, finishedAt } of intervals.toSorted((a, b) => a.startedAt - b.startedAt)) {
    covered += Math.max(0, finishedAt - Math.max(startedAt, until));
    until = Math.max(until, finishedAt);
  }
  return covered;
}

/**
 * A time that somebody else reports, moved into the span in which it must be. If it is not a number, the end
 * of the span.
 */
export function clamped(at: number, startedAt: number, finishedAt: number): number {
  return Number.isNaN(at) ? finishedAt : Math.max(startedAt, Math.min(at, finishedAt));
}
