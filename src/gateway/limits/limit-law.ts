/**
 * How many requests may be in flight at a model whose limit adapts: additive increase, multiplicative
 * decrease (Chiu and Jain 1989), with two signals. The model refused a request, or answers waited in its
 * queue. The wait is measured as in TCP Vegas (Brakmo and Peterson 1995): the time to the first token beyond
 * the best one seen. A queue delays every request, so the answer that waited the least tells how long the
 * queue is. So neither one slow trial nor prompts that are missing in the model's cache lower the limit.
 */

/** What is known about a model's limit. */
export interface LimitState {
  /** Requests that may be in flight. */
  limit: number;
  /** When `limit` changed, epoch milliseconds. Answers to requests sent before say nothing about it. */
  changedAt: number;
  /** When a refusal last decreased the limit; 0 if none has. */
  cutAt: number;
  /** Whether a request that was sent after that decrease was answered. */
  worked: boolean;
  /** The fewest requests in flight at which the model refused one, unless that many have worked since. */
  refusedAt?: number | undefined;
  /** Rounds just below `refusedAt`, and the time (epoch milliseconds), before it is tried again. */
  holdRounds: number;
  holdUntil: number;
  /** Whether nothing has decreased the limit yet, so that each round doubles it. */
  starting: boolean;
  /**
   * The shortest times to the first token, milliseconds, since `bestSince` and in the period before, because
   * a server may become slower. A long conversation takes longer to read than a short one, so each power of
   * two of bytes has its own.
   */
  best: Record<string, number>;
  bestBefore: Record<string, number>;
  bestSince: number;
  /** What the answers said since the limit changed, or since they were last looked at. */
  round: Round;
}

interface Round {
  answers: number;
  /** The most requests in flight. */
  peak: number;
  /** The smallest part of its time that an answer waited. Absent if no answer was streamed. */
  waited?: number | undefined;
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

interface Refused {
  kind: 'refused';
  sentAt: number;
  inFlight: number;
  /** Milliseconds that the model asked to wait. */
  waitMs: number;
}

export interface StreamTimes {
  requestBytes: number;
  /** Milliseconds to the first byte of the body, and to its end. */
  firstMs: number;
  totalMs: number;
}

/** Requests in flight at first, and the fewest answers that make a round. */
const first = 4;
/** Factors of the limit: after a refusal or a short wait, and after two refusals in a row or a long wait. */
const cut = 0.8;
const nextCut = 0.5;
/** The increase after a round, as a part of the limit; at least one request. */
const step = 1 / 10;
/** The parts of an answer's time in the queue above which the limit falls, and below which it may rise. */
const tooLong = 0.3;
const short = 0.2;
/** The part of the limit that must be in flight for an answer to show whether the limit is too high. */
const used = 0.75;
/** Rounds that the limit stays below a number that was refused. */
const hold = 8;
/** A refusal costs at most this part of the time until the next one is risked, which is at most that long. */
const riskedPart = 1 / 20;
const longestHoldMs = 300_000;
/** The length of a period of best times in milliseconds. */
const bestMs = 600_000;

/** @param most requests in flight, as configured */
export function newLimit(most: number, now: number): LimitState {
  return {
    limit: Math.min(first, most),
    changedAt: now,
    cutAt: 0,
    worked: true,
    holdRounds: 0,
    holdUntil: 0,
    starting: true,
    best: {},
    bestBefore: {},
    bestSince: now,
    round: newRound(),
  };
}

/**
 * Takes one event into account.
 *
 * @param most requests in flight, as configured
 */
export function observe(
  state: LimitState,
  event: LimitEvent,
  { most, now }: { most: number; now: number },
): void {
  // The clock may have been set back: these times could stay in the future for hours.
  state.changedAt = Math.min(state.changedAt, now);
  state.cutAt = Math.min(state.cutAt, now);
  if (state.holdUntil > now + longestHoldMs) state.holdUntil = now;
  if (state.limit > most) moveTo(state, most, now);
  if (event.kind === 'refused') refused(state, event, now);
  else answered(state, event, most, now);
}

/** The limit decreases once for all requests that were in flight. */
function refused(state: LimitState, { sentAt, inFlight, waitMs }: Refused, now: number): void {
  state.holdUntil = Math.max(state.holdUntil, now + Math.min(longestHoldMs, waitMs / riskedPart));
  if (sentAt <= state.cutAt) return;
  const factor = state.worked ? cut : nextCut;
  state.refusedAt = Math.max(2, inFlight);
  state.holdRounds = hold;
  state.worked = false;
  state.starting = false;
  state.cutAt = now;
  moveTo(state, Math.floor(Math.min(state.limit, inFlight) * factor), now);
}

/** Counts an answer, and moves the limit if that ends a round. */
function answered(
  state: LimitState,
  { sentAt, inFlight, stream }: Answered,
  most: number,
  now: number,
): void {
  const waited = stream && waitedPart(state, stream, now);
  if (sentAt > state.cutAt) state.worked = true;
  if (sentAt < state.changedAt) return;
  const { round } = state;
  round.answers += 1;
  round.peak = Math.max(round.peak, inFlight);
  // The queue is as long as the limit makes it only while the limit is used.
  const isUsed = inFlight >= used * state.limit;
  if (waited !== undefined && isUsed) round.waited = Math.min(round.waited ?? 1, waited);
  if (round.answers < Math.max(first, state.limit / 2)) return;
  state.round = newRound();
  const wait = round.waited ?? 0;
  if (wait > tooLong) {
    state.starting = false;
    // By Little's law, this part of the requests in flight only waits.
    const factor = Math.max(nextCut, Math.min(cut, 1 - wait + short));
    moveTo(state, Math.floor(Math.min(state.limit, round.peak) * factor), now);
  } else if (wait < short && 2 * round.peak >= state.limit) grow(state, round.peak, most, now);
}

/** Increases the limit. Holds it for a while just below a number of requests that the model refused. */
function grow(state: LimitState, peak: number, most: number, now: number): void {
  const { limit, starting } = state;
  // That many have worked now.
  if (state.refusedAt !== undefined && peak >= state.refusedAt) state.refusedAt = undefined;
  const { refusedAt = Number.POSITIVE_INFINITY } = state;
  if (limit >= refusedAt) return;
  let next = limit + (starting ? limit : Math.max(1, Math.floor(limit * step)));
  if (limit < refusedAt - 1) next = Math.min(next, refusedAt - 1);
  else {
    state.holdRounds -= 1;
    if (state.holdRounds > 0 || now < state.holdUntil) return;
    next = refusedAt;
  }
  moveTo(state, Math.min(most, next), now);
}

/** Begins a round with another limit. */
function moveTo(state: LimitState, limit: number, now: number): void {
  state.limit = Math.max(1, limit);
  state.changedAt = now;
  state.round = newRound();
}

function newRound(): Round {
  return { answers: 0, peak: 0 };
}

/** The part of its time that an answer waited, compared with the best answer to a request of that size. */
function waitedPart(state: LimitState, { requestBytes, firstMs, totalMs }: StreamTimes, now: number): number {
  if (Math.abs(now - state.bestSince) > bestMs) {
    state.bestBefore = state.best;
    state.best = {};
    state.bestSince = now;
  }
  const size = String(Math.floor(Math.log2(Math.max(1, requestBytes))));
  const recent = Math.min(state.best[size] ?? firstMs, firstMs);
  state.best[size] = recent;
  const best = Math.min(recent, state.bestBefore[size] ?? recent);
  return (firstMs - best) / Math.max(1, firstMs, totalMs);
}
