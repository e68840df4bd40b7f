import { describe, expect, test } from 'vitest';
import { newLimit, observe } from '../../../src/gateway/limits/limit-law.ts';
import { type SimulatedModel, simulate } from './simulation.ts';

const times = {
  firstMs: (random: number) => 300 * (0.7 + 0.6 * random),
  restMs: (random: number) => 4_000 * (0.5 + random),
};
const forMs = 480_000;
const steady = (capacity: number): SimulatedModel['capacity'] => {
  return () => capacity;
};
/** It changes every two minutes. */
const moving: SimulatedModel['capacity'] = (atMs) => [8, 16, 4, 12][Math.floor(atMs / 120_000)] ?? 12;

describe('a model that refuses what is too much', () => {
  test.for([1, 2, 5, 16])('with room for %i', (capacity) => {
    const model: SimulatedModel = { capacity: steady(capacity), beyond: 'refuses', ...times };
    const run = simulate(model, { clients: 40, most: 32, forMs });
    expect(run.answered / run.possible).toBeGreaterThan(0.9);
    expect(run.refused).toBeLessThan(0.15 * run.answered);
    expect(Math.max(...run.limits.slice(60))).toBeLessThanOrEqual(capacity + 1);
  });

  test('with room that changes: more is answered than with the best fixed limit', () => {
    const run = simulate({ capacity: moving, beyond: 'refuses', ...times }, { clients: 40, most: 32, forMs });
    // A fixed limit of 8 has 8, 8, 4 and 8 in flight.
    const fixed = (8 + 8 + 4 + 8) / (8 + 16 + 4 + 12);
    expect(run.answered / run.possible).toBeGreaterThan(fixed);
    // At the end of each part, the limit is where the room is.
    expect([110, 230, 350, 470].map((second) => run.limits[second])).toEqual([8, 16, 4, 12].map(near));
  });
});

describe('a model that lets requests wait', () => {
  test.for([1, 2, 5, 16])('with room for %i', (capacity) => {
    const model: SimulatedModel = { capacity: steady(capacity), beyond: 'queues', ...times };
    const run = simulate(model, { clients: 40, most: 32, forMs });
    expect(run.answered / run.possible).toBeGreaterThan(0.9);
    // About a third of what is in flight waits: so it has always something to do.
    expect(Math.max(...run.limits.slice(60))).toBeLessThanOrEqual(Math.ceil(capacity * 1.6) + 2);
  });

  test.for([40, 24])('with room that changes, and %i that ask', (clients) => {
    const run = simulate({ capacity: moving, beyond: 'queues', ...times }, { clients, most: 32, forMs });
    expect(run.answered / run.possible).toBeGreaterThan(0.85);
    // At the end of each part, the limit has followed.
    const limits = [110, 230, 350, 470].map((second) => run.limits[second] ?? 0);
    expect(limits.map((limit, part) => limit / ([8, 16, 4, 12][part] ?? 1))).toEqual(
      Array(4).fill(within(0.75, 3)),
    );
  });
});

test('a limit never exceeds what the configuration allows, and is soon there if the model has room', () => {
  const model: SimulatedModel = { capacity: steady(1_000), beyond: 'refuses', ...times };
  const run = simulate(model, { clients: 40, most: 10, forMs: 60_000 });
  expect(Math.max(...run.limits)).toBe(10);
  expect(run.limits[30]).toBe(10);
});

test('first tokens that are late for another reason than a queue do not keep the limit small', () => {
  const model: SimulatedModel = {
    capacity: steady(1_000),
    beyond: 'refuses',
    // The prompt is in the cache of the model, or not.
    firstMs: (random) => (random < 0.3 ? 300 : 4_000 * random),
    restMs: times.restMs,
  };
  const run = simulate(model, { clients: 40, most: 32, forMs });
  expect(run.limits.at(-1)).toBeGreaterThan(20);
});

test('a model that few ask keeps its limit', () => {
  const model: SimulatedModel = { capacity: steady(1_000), beyond: 'refuses', ...times };
  expect(simulate(model, { clients: 1, most: 32, forMs }).state.limit).toBe(4);
});

test('one trial whose answers are late does not lower the limit for the others', () => {
  const state = newLimit(32, 0);
  let now = 0;
  const answer = (firstMs: number) => {
    now += 100;
    const stream = { requestBytes: 2_000, firstMs, totalMs: 4_000 };
    return observe(state, { kind: 'answered', sentAt: now - 50, inFlight: 4, stream }, { most: 32, now });
  };
  const limits: number[] = [];
  const answers = (firstMs: number) => {
    for (let more = 0; more < 3; more++) answer(firstMs);
    limits.push(state.limit);
  };
  for (let round = 0; round < 40; round++) for (const firstMs of [300, 3_900]) answers(firstMs);
  expect(limits).toEqual(limits.toSorted((one, other) => one - other));
});

test('several refusals at a time count once, and a second time with nothing answered counts double', () => {
  const state = newLimit(32, 0);
  state.limit = 20;
  const refuse = (sentAt: number, inFlight: number, now: number) =>
    observe(state, { kind: 'refused', sentAt, inFlight, waitMs: 0 }, { most: 32, now });
  refuse(10, 20, 20);
  expect(state.limit).toBe(16);
  for (let more = 0; more < 10; more++) refuse(15, 20, 21 + more);
  expect(state.limit).toBe(16);
  refuse(40, 16, 50);
  expect(state.limit).toBe(8);
});

test('a time that the model asks to wait makes the next try of that many rarer', () => {
  const tries = (waitMs: number) => {
    const state = newLimit(32, 0);
    state.limit = 5;
    let now = 1_000;
    let refusals = 0;
    for (let answer = 0; answer < 4_000; answer++) {
      now += 100;
      const event = { sentAt: now - 50, inFlight: state.limit };
      if (state.limit < 5) observe(state, { kind: 'answered', ...event }, { most: 32, now });
      else {
        refusals += 1;
        observe(state, { kind: 'refused', ...event, waitMs }, { most: 32, now });
      }
    }
    return refusals;
  };
  // In 400 seconds: each costs 10 seconds, and so is risked once in 200 seconds.
  expect(tries(10_000)).toBeLessThanOrEqual(3);
  expect(tries(0)).toBeGreaterThan(20);
});

test('a clock that is set back does not stop the limit', () => {
  const state = newLimit(32, 1e12);
  observe(
    state,
    { kind: 'refused', sentAt: 1e12 + 1, inFlight: 4, waitMs: 60_000 },
    { most: 32, now: 1e12 + 2 },
  );
  let now = 1_000;
  for (let answer = 0; answer < 20_000; answer++) {
    now += 100;
    observe(state, { kind: 'answered', sentAt: now - 50, inFlight: state.limit }, { most: 32, now });
  }
  expect(state.limit).toBe(32);
});

function within(least: number, most: number) {
  return expect.toSatisfy((ratio: number) => ratio >= least && ratio <= most);
}

function near(capacity: number) {
  return expect.toSatisfy((limit: number) => Math.abs(limit - capacity) <= Math.ceil(capacity / 4));
}
