import { adaptingLimits } from '../../bounds/model.ts';
import { bestOf } from './best-times.ts';
import {
  firstHold,
  type LimitEvent,
  type LimitReason,
  type LimitState,
  newRound,
  type Refused,
  type StreamTimes,
  usualTolerance,
} from './limit-state.ts';

/** Decrease after a refusal, and after another one before anything was answered. */
const firstCut = 0.8;
const nextCut = 0.5;
const longestHold = 8;
/** A refusal costs at most this part of the time until the next one is risked. */
const riskedPart = 1 / 20;
const longestHoldMs = 300_000;
/** Answers in a round, unless the limit is higher: then as many as the limit. */
const leastAnswers = 5;
/** Decrease if answers wait, at least and at most. */
const leastWaitCut = 0.8;
const mostWaitCut = 0.5;
/** The largest tolerance that is learned, how much it exceeds what was seen, and for how long it holds. */
const mostTolerance = 0.75;
const toleranceMargin = 0.15;
const toleranceMs = 600_000;
/** A part of the time that is not waited has not become smaller, if it is more than this part of itself. */
const unchanged = 0.9;
/** Below the tolerance by this much, answers do not wait. */
const noWaitMargin = 0.125;
/** What a higher limit is tried with although answers wait, as a part of the limit, and rounds between tries. */
const tryPart = 1 / 4;
const longestTryAfter = 64;
/** Rounds in a row that increase the limit by one, before the increase doubles each time. */
const singleSteps = 2;
/** Milliseconds after which a round ends without a result if too few trials have voted. */
const longestRoundMs = 60_000;

/**
 * Takes one event into account, and returns why the limit moved, if it did. The law combines three published
 * ones:
 *
 * - Additive increase, multiplicative decrease when the model refuses a request (Chiu and Jain 1989). As in
 *   CUBIC (RFC 9438), the number of requests at which it refused is remembered: the limit returns to just
 *   below it, and stays there for a while before that number is tried again.
 * - TCP Vegas (Brakmo and Peterson 1995), as in `VegasLimit` and `GradientLimit` of
 *   https://github.com/Netflix/concurrency-limits: what an answer takes longer than the best seen is time in
 *   a queue. Here that is time to the first token, as a part of the whole time of its answer. By Little's
 *   law, the same part of the requests in flight only waits.
 * - The limit does not grow unless half of it was used (`VegasLimit`).
 *
 * Time to the first token depends on more than the queue, for example on the model's cache. So what is done
 * because of it is on trial: if another limit does not change the wait, it is not in a queue, and is tolerated
 * for a while.
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

/** A clock that was set back must not make a time of the past last for hours. */
function forgetFuture(state: LimitState, now: number): void {
  if (state.changedAt > now) state.changedAt = now;
  if (state.cutAt > now) state.cutAt = now;
  if (state.holdUntil > now + longestHoldMs) state.holdUntil = now;
  if (state.toleranceUntil > now + toleranceMs) state.toleranceUntil = now;
}

function moveTo(state: LimitState, limit: number, now: number): void {
  state.limit = limit;
  state.rounds = 0;
  state.changedAt = now;
  state.round = newRound(now);
}

function refused(state: LimitState, { sentAt, inFlight, waitMs }: Refused, now: number): LimitReason {
  state.holdUntil = Math.max(state.holdUntil, now + Math.min(longestHoldMs, waitMs / riskedPart));
  if (sentAt <= state.cutAt) {
    // It was sent before the decrease, which already answers it. It may tell more exactly where the limit is.
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

function answered(
  state: LimitState,
  { sentAt, inFlight, stream }: Extract<LimitEvent, { kind: 'answered' }>,
  most: number,
  now: number,
): LimitReason | undefined {
  const waited = stream && waitedPart(state, stream, now);
  if (sentAt > state.cutAt) state.worked = true;
  if (sentAt < state.changedAt) return undefined;
  const { round } = state;
  round.answers += 1;
  round.peak = Math.max(round.peak, inFlight);
  if (stream && waited !== undefined) vote(round.waits, stream.trial, waited);
  const enough = Math.max(leastAnswers, state.limit);
  if (round.answers < enough) return undefined;
  const result = median(Object.values(round.waits));
  if ((result > state.tolerance || state.onTrial) && !isQuorum(state)) {
    if (Math.abs(now - round.since) > longestRoundMs) nextRound(state, now);
    return undefined;
  }
  return endRound(state, { waited: result, peak: round.peak, most, now });
}

/** The part of an answer's time that it waited, compared with the best one of its size. */
function waitedPart(state: LimitState, stream: StreamTimes, now: number): number {
  const { requestBytes, firstMs, totalMs } = stream;
  const best = bestOf(state.best, requestBytes, firstMs, now);
  return (firstMs - best) / Math.max(1, firstMs, totalMs);
}

function vote(waits: Record<string, number>, trial: string, waited: number): void {
  const known = Object.hasOwn(waits, trial) ? waits[trial] : undefined;
  if (known === undefined && Object.keys(waits).length >= adaptingLimits.count.voters) return;
  waits[trial] = Math.min(known ?? waited, waited);
}

/**
 * Whether half of the trials of this round and the one before have voted. So one trial that asks more than all
 * others together cannot decrease their limit.
 */
function isQuorum({ voters, round: { waits } }: LimitState): boolean {
  const absent = voters.filter((trial) => !Object.hasOwn(waits, trial));
  return absent.length <= Object.keys(waits).length;
}

function nextRound(state: LimitState, now: number): void {
  state.voters = Object.keys(state.round.waits);
  state.round = newRound(now);
}

interface RoundResult {
  waited: number;
  peak: number;
  most: number;
  now: number;
}

function endRound(state: LimitState, { waited, peak, most, now }: RoundResult): LimitReason | undefined {
  nextRound(state, now);
  const inFlight = Math.max(1, Math.min(state.limit, peak));
  state.rounds += 1;
  if (now >= state.toleranceUntil) state.tolerance = usualTolerance;
  // In the first round the queue is still about to grow or to shrink.
  if (state.rounds === 1 && (state.onTrial || waited > state.tolerance)) return undefined;
  if (state.onTrial) {
    const { onTrial } = state;
    state.onTrial = undefined;
    const shown = shownBy(onTrial, { inFlight, waited });
    if (shown === 'other') {
      state.tolerance = Math.min(mostTolerance, waited + toleranceMargin);
      state.toleranceUntil = now + toleranceMs;
      state.tryAfter = firstHold;
    }
    const isRaised = state.limit > onTrial.limit;
    if (shown === (isRaised ? 'queue' : 'other')) {
      if (isRaised) state.tryAfter = Math.min(longestTryAfter, 2 * state.tryAfter);
      moveTo(state, Math.min(most, onTrial.limit), now);
      return isRaised ? 'waiting' : 'no-use';
    }
  }
  if (waited > state.tolerance && state.limit > 1) return cutForWaiting(state, { inFlight, waited }, now);
  if (2 * peak < state.limit) return undefined;
  if (waited > state.tolerance - noWaitMargin) {
    // Enough requests wait to keep the model busy, if it is a queue in which they wait.
    state.streak = 0;
    state.starting = false;
    state.waitRounds += 1;
    if (state.waitRounds < state.tryAfter || state.limit >= (state.refusedAt ?? most + 1) - 1)
      return undefined;
    state.onTrial = { limit: state.limit, inFlight, waited };
    moveTo(state, Math.min(most, state.limit + Math.max(1, Math.floor(state.limit * tryPart))), now);
    return 'room';
  }
  return grow(state, { most, peak, now });
}

function cutForWaiting(state: LimitState, { inFlight, waited }: Tried, now: number): LimitReason {
  const cut = Math.min(leastWaitCut, Math.max(mostWaitCut, 1 - waited + state.tolerance));
  state.onTrial = { limit: state.limit, inFlight, waited };
  state.streak = 0;
  state.starting = false;
  state.waitRounds = 0;
  moveTo(state, Math.max(1, Math.floor(inFlight * cut)), now);
  return 'waiting';
}

interface Tried {
  inFlight: number;
  waited: number;
}

/**
 * What another number of requests in flight has shown about the wait. `queue`: it is in the model's queue, because it has changed at
 * least half as much as it would there, where the part of the time that is not waited is proportional to
 * 1 / number. `other`: it has another reason. `nothing`: it has changed the wrong way, so the model itself has.
 */
function shownBy(before: Tried, after: Tried): 'queue' | 'other' | 'nothing' {
  if (before.inFlight === after.inFlight) return 'nothing';
  const expected = (1 + before.inFlight / after.inFlight) / 2;
  const seen = (1 - after.waited) / Math.max(0.001, 1 - before.waited);
  const [change, least] = expected > 1 ? [seen, expected] : [1 / seen, 1 / expected];
  if (change >= least) return 'queue';
  return change > unchanged ? 'other' : 'nothing';
}

function grow(
  state: LimitState,
  { most, peak, now }: { most: number; peak: number; now: number },
): LimitReason | undefined {
  const { limit } = state;
  if (state.refusedAt !== undefined && limit >= state.refusedAt) {
    if (peak < state.refusedAt) return undefined;
    // As many as were refused before have worked.
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

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
