import {
  firstHold,
  type LimitReason,
  type LimitState,
  longestHoldMs,
  moveTo,
  type Refused,
} from './limit-state.ts';

/** Factors of the limit: after a refusal, and after another one with no answer in between. */
const firstCut = 0.8;
const nextCut = 0.5;
/** Rounds that the limit stays below a number that was refused, at most. */
const longestHold = 8;
/** A refusal costs at most this part of the time until the next one is risked. */
const riskedPart = 1 / 20;

/** The model refused a request: the limit decreases, once for all requests that were in flight. */
export function refused(state: LimitState, { sentAt, inFlight, waitMs }: Refused, now: number): LimitReason {
  state.holdUntil = Math.max(state.holdUntil, now + Math.min(longestHoldMs, waitMs / riskedPart));
  if (sentAt <= state.cutAt) {
    // The request was sent before the last decrease, so the limit stays. The refusal may show more exactly
    // where the model's limit is.
    const lower = Math.max(inFlight, state.limit + 1);
    state.refusedAt = Math.min(state.refusedAt ?? lower, lower);
    return 'refused';
  }
  const wasTried = state.refusedAt !== undefined && inFlight >= state.refusedAt;
  state.holdRounds = wasTried ? Math.min(longestHold, 2 * state.holdRounds) : firstHold;
  state.heldRounds = 0;
  state.refusedAt = Math.max(2, inFlight);
  const cut = state.worked ? firstCut : nextCut;
  state.worked = false;
  state.cutAt = now;
  state.streak = 0;
  state.starting = false;
  state.onTrial = undefined;
  moveTo(state, Math.max(1, Math.floor(Math.min(state.limit, inFlight) * cut)), now);
  return 'refused';
}
