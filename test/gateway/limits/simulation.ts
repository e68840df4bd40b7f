import { type LimitState, newLimit, observe } from '../../../src/gateway/limits/limit-law.ts';

export interface SimulatedModel {
  /** Requests that it works on at a time. */
  capacity(atMs: number): number;
  /** What happens to one more request. */
  beyond: 'refuses' | 'queues';
  /** Milliseconds to the first token, and for the rest of an answer. `random` is from 0 to 1. */
  firstMs(random: number, inFlight: number): number;
  restMs(random: number): number;
}

export interface Simulated {
  state: LimitState;
  answered: number;
  refused: number;
  /** What the model could answer, if as many requests as it takes were always in flight. */
  possible: number;
  /** The limit at each second. */
  limits: number[];
}

interface Request {
  trial: string;
  sentAt: number;
  inFlight: number;
  startedAt: number;
}

/**
 * The law against a model, in simulated time: `clients` ask one request after the other, as far as the limit
 * allows.
 */
export function simulate(
  model: SimulatedModel,
  { clients, most, forMs, seed = 1 }: { clients: number; most: number; forMs: number; seed?: number },
): Simulated {
  const random = randomFrom(seed);
  const state = newLimit(most, 0);
  const events: { at: number; run: () => void }[] = [];
  const idle = Array.from({ length: clients }, (_, client) => `trial-${client}`);
  const queue: Request[] = [];
  const limits: number[] = [];
  let now = 0;
  let working = 0;
  let sent = 0;
  let answered = 0;
  let refused = 0;
  const later = (ms: number, run: () => void) => events.push({ at: now + ms, run });
  const handle = (event: Parameters<typeof observe>[1]) => observe(state, event, { most, now });

  const start = (request: Request) => {
    working += 1;
    const first = model.firstMs(random(), sent);
    const firstAt = now + first;
    later(first + model.restMs(random()), () => {
      working -= 1;
      sent -= 1;
      answered += 1;
      const { trial, sentAt, inFlight } = request;
      const stream = { requestBytes: 2_000, firstMs: firstAt - sentAt, totalMs: now - sentAt };
      handle({ kind: 'answered', sentAt, inFlight, stream });
      idle.push(trial);
    });
  };
  const pump = () => {
    while (queue.length > 0 && working < model.capacity(now)) start(queue.shift() as Request);
    while (idle.length > 0 && sent < state.limit) {
      sent += 1;
      const request = { trial: idle.shift() as string, sentAt: now, inFlight: sent, startedAt: now };
      if (working < model.capacity(now)) start(request);
      else if (model.beyond === 'queues') queue.push(request);
      else
        later(5, () => {
          sent -= 1;
          refused += 1;
          handle({ kind: 'refused', sentAt: request.sentAt, inFlight: request.inFlight, waitMs: 0 });
          later(500 + 500 * random(), () => idle.push(request.trial));
        });
    }
  };
  for (let second = 0; second * 1_000 < forMs; second++)
    events.push({ at: second * 1_000, run: () => limits.push(state.limit) });
  while (now < forMs) {
    pump();
    events.sort((one, other) => other.at - one.at);
    const next = events.pop();
    if (!next) break;
    now = next.at;
    next.run();
  }
  let possible = 0;
  const usualMs = model.firstMs(0.5, 1) + model.restMs(0.5);
  for (let ms = 0; ms < forMs; ms += 100) possible += (Math.min(clients, model.capacity(ms)) * 100) / usualMs;
  return { state, answered, refused, possible, limits };
}

/** Numbers from 0 to 1 that are the same in each run (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
