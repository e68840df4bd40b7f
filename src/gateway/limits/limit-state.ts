import { type BestTimes, noTimes } from './best-times.ts';

/** What is known about a model's limit. It is kept as JSON, and all processes of a machine share it. */
export interface LimitState {
  /** Requests that may be in flight. */
  limit: number;
  /** When `limit` changed, epoch milliseconds. Answers to requests sent before do not count in this round. */
  changedAt: number;
  /** When a refusal last decreased the limit; 0 if none has. */
  cutAt: number;
  /** Whether a request that was sent after that decrease was answered. */
  worked: boolean;
  /** The fewest requests in flight at which the model refused one, unless that many have worked since. */
  refusedAt?: number | undefined;
  /** Rounds that the limit stays just below `refusedAt`, and how many of them have passed. */
  holdRounds: number;
  heldRounds: number;
  /** `refusedAt` is not tried again before this time, epoch milliseconds. */
  holdUntil: number;
  /** How many rounds in a row have increased the limit. */
  streak: number;
  /** Whether nothing has decreased the limit yet, so that each round doubles it. */
  starting: boolean;
  /** The part of an answer's time that may pass in the model's queue before the limit decreases. */
  tolerance: number;
  /** Until when a larger tolerance than usual holds, epoch milliseconds. */
  toleranceUntil: number;
  /** Rounds since the limit changed. */
  rounds: number;
  /**
   * A change that is on trial: the limit before it, the requests that were in flight then, and the part of
   * its time that an answer waited.
   */
  onTrial?: { limit: number; inFlight: number; waited: number } | undefined;
  /** Rounds in which answers waited, but not too long, and after how many of them a higher limit is tried. */
  waitRounds: number;
  tryAfter: number;
  best: BestTimes;
  /** The trials that voted in the round before. */
  voters: string[];
  round: Round;
}

/** What the answers said since the limit changed, or since the last look at them. */
export interface Round {
  /** Epoch milliseconds. */
  since: number;
  answers: number;
  /** The most requests in flight. */
  peak: number;
  /**
   * By trial: the smallest part of its time that an answer spent in the queue. So each trial has one vote.
   */
  waits: Record<string, number>;
}

export type LimitEvent = Answered | Refused;

interface Answered {
  kind: 'answered';
  /** Epoch milliseconds. */
  sentAt: number;
  /** Requests in flight when this one was sent, including this one. */
  inFlight: number;
  /** Only for streamed answers, which have a first token. */
  stream?: StreamTimes | undefined;
}

export interface Refused {
  kind: 'refused';
  sentAt: number;
  inFlight: number;
  /** Milliseconds that the model asked to wait. */
  waitMs: number;
}

export interface StreamTimes {
  /** Names the trial that asked. */
  trial: string;
  requestBytes: number;
  /** Milliseconds to the first byte of the body, and to its end. */
  firstMs: number;
  totalMs: number;
}

/**
 * Why a limit moved. `room`: all requests were answered without a wait. `refused`: the model refused one.
 * `waiting`: answers waited in the model's queue. `no-use`: a decrease for waiting did not shorten the wait.
 * `most`: the configuration allows no more.
 */
export type LimitReason = 'room' | 'refused' | 'waiting' | 'no-use' | 'most';

/** Requests in flight at first. */
const firstLimit = 4;
/** The part of an answer's time in the queue that is normal. */
export const usualTolerance = 0.33;
/** Rounds below a number that was refused; doubled each time the number is refused again. */
export const firstHold = 4;

export function newRound(since: number): Round {
  return { since, answers: 0, peak: 0, waits: {} };
}

/** @param most requests in flight, as configured */
export function newLimit(most: number, now: number): LimitState {
  return {
    limit: Math.min(firstLimit, most),
    changedAt: now,
    cutAt: 0,
    worked: true,
    holdRounds: firstHold,
    heldRounds: 0,
    holdUntil: 0,
    streak: 0,
    starting: true,
    tolerance: usualTolerance,
    toleranceUntil: 0,
    rounds: 0,
    waitRounds: 0,
    tryAfter: firstHold,
    best: noTimes(now),
    voters: [],
    round: newRound(now),
  };
}

/** Milliseconds: how long a refusal can hold the limit at most, and how long a learned tolerance lasts. */
export const longestHoldMs = 300_000;
export const toleranceMs = 600_000;

/** Begins a round with another limit. */
export function moveTo(state: LimitState, limit: number, now: number): void {
  state.limit = limit;
  state.rounds = 0;
  state.changedAt = now;
  state.round = newRound(now);
}

/**
 * Corrects stored times after the clock was set back: without this, they could stay in the future for hours.
 */
export function forgetFuture(state: LimitState, now: number): void {
  if (state.changedAt > now) state.changedAt = now;
  if (state.cutAt > now) state.cutAt = now;
  if (state.holdUntil > now + longestHoldMs) state.holdUntil = now;
  if (state.toleranceUntil > now + toleranceMs) state.toleranceUntil = now;
}
