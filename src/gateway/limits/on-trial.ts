/** A part of the time that is not waited has not become smaller, if it is more than this part of itself. */
const unchanged = 0.9;

/** Requests in flight, and the part of an answer's time that it waited. */
export interface Tried {
  inFlight: number;
  waited: number;
}

/**
 * What a changed number of requests in flight shows about the wait. In the model's queue, the part of the
 * time that is not waited is proportional to 1 / number. `queue`: the wait changed at least half as much as
 * that. `other`: it changed less, so the wait has another reason. `nothing`: it changed the wrong way, so the
 * model itself changed.
 */
export function shownBy(before: Tried, after: Tried): 'queue' | 'other' | 'nothing' {
  if (before.inFlight === after.inFlight) return 'nothing';
  const expected = (1 + before.inFlight / after.inFlight) / 2;
  const seen = (1 - after.waited) / Math.max(0.001, 1 - before.waited);
  const [change, least] = expected > 1 ? [seen, expected] : [1 / seen, 1 / expected];
  if (change >= least) return 'queue';
  return change > unchanged ? 'other' : 'nothing';
}
