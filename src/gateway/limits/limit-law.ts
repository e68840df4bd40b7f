import {
  firstHold,
  forgetFuture,
  type LimitEvent,
  type LimitReason,
  type LimitState,
  longestHoldMs,
  moveTo,
  type Refused,
} from './limit-state.ts';
import { answered } from './round.ts';

/** Factors of the limit: after a refusal, and after another one with no answer in between. */
const firstCut = 0.8;
const nextCut = 0.5;
/** Rounds that the limit stays below a number that was refused, at most. */
const longestHold = 8;
/** A refusal costs at most this part of the time until the next one is risked. */
const riskedPart = 1 / 20;

/** The model refused a request: the limit decreases, once for all requests that were in flight. */
function refused(state: LimitState, { sentAt, inFlight, waitMs }: Refused, now: number): LimitReason {
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

/**
 * Takes one event into account, and returns why the limit moved, if it did. The law combines three published
 * ones:
 *
 * - Additive increase, multiplicative decrease when the model refuses a request (Chiu and Jain 1989). As in
 *   CUBIC (RFC 9438), the number of requests at which it refused is remembered: the limit returns to just
 *   below it, and stays there for a while before that number is tried again.
 * - TCP Vegas (Brakmo and Peterson 1995), as in `VegasLimit` and `GradientLimit` of
 *   https://github.com/Netflix/concurrency-limits: the time that an answer takes beyond the best time seen is
 *   time in a queue. Here it is measured to the first token, as a part of the whole time of the answer. By
 *   Little's law, the same part of the requests in flight only waits.
 * - The limit does not grow unless half of it was used (`VegasLimit`).
 *
 * Time to the first token depends on more than the queue, for example on the model's cache. So a change of
 * the limit because of a wait is a test: if the wait stays the same, its reason is not a queue. The change is
 * then undone, and such a wait is tolerated for a while.
 *
 * @param most requests in flight, as configured
 */
export function observe(
  state: LimitState,
  event: LimitEvent,
  { most, now }: { most: number; now: number },
): LimitReason | undefined {
  const before = state.limit;
  forgetFuture(state, now);
  if (state.limit > most) moveTo(state, most, now);
  const asked = before > most ? 'most' : undefined;
  const why = event.kind === 'refused' ? refused(state, event, now) : answered(state, event, most, now);
  return state.limit === before ? undefined : (why ?? asked);
}
