/**
 * A change in the expected direction is a factor above 1. A factor up to this is a change in the wrong
 * direction.
 */
const unchanged = 0.9;

/** Requests in flight, and the part of its time that an answer waited. */
export interface Tried {
  inFlight: number;
  waited: number;
}

/**
 * What a changed number of requests in flight shows about the wait. If they wait in the model's queue, the
 * part of the time in which an answer does not wait is proportional to 1 / number. `queue`: that part changed
 * at least half as much as predicted. `other`: it changed less, so the wait has another reason. `nothing`: it
 * changed in the wrong direction, so the model itself changed.
 */
export function shownBy(before: Tried, after: Tried): 'queue' | 'other' | 'nothing' {
  if (before.inFlight === after.inFlight) return 'nothing';
  const expected = (1 + before.inFlight / after.inFlight) / 2;
  const seen = (1 - after.waited) / Math.max(0.001, 1 - before.waited);
  const [change, least] = expected > 1 ? [seen, expected] : [1 / seen, 1 / expected];
  if (change >= least) return 'queue';
  return change > unchanged ? 'other' : 'nothing';
}
