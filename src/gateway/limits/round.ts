import { adaptingLimits } from '../../bounds/model.ts';
import { bestOf } from './best-times.ts';
import { grow } from './growth.ts';
import {
  firstHold,
  type LimitEvent,
  type LimitReason,
  type LimitState,
  moveTo,
  newRound,
  type StreamTimes,
  toleranceMs,
  usualTolerance,
} from './limit-state.ts';

/** Answers in a round, unless the limit is higher: then as many as the limit. */
const leastAnswers = 5;
/** Factors of the limit if answers wait: for the smallest decrease, and for the largest. */
const leastWaitCut = 0.8;
const mostWaitCut = 0.5;
/** The largest tolerance that is learned, and how much it exceeds what was seen. */
const mostTolerance = 0.75;
const toleranceMargin = 0.15;
/** An answer whose wait is below the tolerance by at least this much counts as one that did not wait. */
const noWaitMargin = 0.125;
/**
 * When a higher limit is tried although answers wait: the increase as a part of the limit, and the most
 * rounds between two tries.
 */
const tryPart = 1 / 4;
const longestTryAfter = 64;
/** Milliseconds after which a round ends without a result if too few trials have voted. */
const longestRoundMs = 60_000;

/** Counts an answer, and moves the limit if that ends a round. */
export function answered(
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

/** The part of its time that an answer waited, compared with the best answer to a request of that size. */
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
 * Whether half of the trials of this round and the one before have voted. So one trial that asks more than
 * all others together cannot decrease their limit.
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

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

/**
 * A change in the expected direction is a factor above 1. A factor up to this is a change in the wrong
 * direction.
 */
const unchanged = 0.9;

/** Requests in flight, and the part of its time that an answer waited. */
interface Tried {
  inFlight: number;
  waited: number;
}

/**
 * What a changed number of requests in flight shows about the wait. If they wait in the model's queue, the
 * part of the time in which an answer does not wait is proportional to 1 / number. `queue`: that part changed
 * at least half as much as predicted. `other`: it changed less, so the wait has another reason. `nothing`: it
 * changed in the wrong direction, so the model itself changed.
 */
function shownBy(before: Tried, after: Tried): 'queue' | 'other' | 'nothing' {
  if (before.inFlight === after.inFlight) return 'nothing';
  const expected = (1 + before.inFlight / after.inFlight) / 2;
  const seen = (1 - after.waited) / Math.max(0.001, 1 - before.waited);
  const [change, least] = expected > 1 ? [seen, expected] : [1 / seen, 1 / expected];
  if (change >= least) return 'queue';
  return change > unchanged ? 'other' : 'nothing';
}
