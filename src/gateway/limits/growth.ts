import { firstHold, type LimitReason, type LimitState, moveTo } from './limit-state.ts';

/** Rounds in a row that increase the limit by one, before the increase doubles each time. */
const singleSteps = 2;

/**
 * Increases the limit after a round whose answers did not wait. Holds it for a while just below a number of
 * requests that the model refused.
 */
export function grow(
  state: LimitState,
  { most, peak, now }: { most: number; peak: number; now: number },
): LimitReason | undefined {
  const { limit } = state;
  if (state.refusedAt !== undefined && limit >= state.refusedAt) {
    if (peak < state.refusedAt) return undefined;
    // The number of requests that the model refused before has worked.
    state.refusedAt = undefined;
    state.holdRounds = firstHold;
    state.streak = 0;
  }
  const { refusedAt } = state;
  state.streak += 1;
  let next = limit + (state.starting ? limit : 2 ** Math.max(0, state.streak - singleSteps));
  // Half of the way back to what worked before.
  if (refusedAt !== undefined) next = Math.max(next, Math.ceil((limit + refusedAt - 1) / 2));
  if (refusedAt !== undefined && limit < refusedAt && next >= refusedAt) {
    if (limit === refusedAt - 1) {
      state.streak = 0;
      state.heldRounds += 1;
      if (state.heldRounds <= state.holdRounds || now < state.holdUntil) return undefined;
      state.heldRounds = 0;
      next = refusedAt;
    } else next = refusedAt - 1;
  }
  if (limit >= most) return undefined;
  moveTo(state, Math.min(most, next), now);
  return 'room';
}
