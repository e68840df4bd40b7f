import { afterAll, beforeAll, expect, test } from 'vitest';
import { Admission } from '../../src/agent/admission.ts';
import { Engines, Moved, type Permit, type Seat } from '../../src/agent/engines/engines.ts';
import { MachineCheck } from '../../src/agent/specify.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { specOf } from '../trial/trial-bench.ts';
import { handClock, settled } from './test-clock.ts';

const never = new AbortController().signal;
let one: Engine;
let other: Engine;
beforeAll(async () => {
  // Two of the same machine: what is placed is placed the same.
  one = await connectEngine({ instance: 'test-engines-one', name: 'one', trials: 1 });
  other = await connectEngine({ instance: 'test-engines-other', name: 'other', trials: 1, labels: ['gpu'] });
});
afterAll(async () => {
  await one?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

function place({
  clock = systemClock,
  all = [one, other],
  concurrency = 9,
}: {
  clock?: Clock;
  all?: Engine[];
  concurrency?: number;
} = {}) {
  const engines = new Engines({
    engines: all,
    areSeveral: true,
    clock,
    random: () => 0,
    patienceMs: 600_000,
    check: new MachineCheck({ engine: one, clock }),
    observe: () => undefined,
  });
  const noLimit = { cpus: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };
  const admission = new Admission({
    clock,
    concurrency,
    room: noLimit,
    requireRoom: async () => undefined,
  });
  return { engines, enter: (seat: Seat, signal = never) => seat.enter(admission, signal) };
}

const nameOf = (seat: Seat) => seat.pooled.engine.name;

test('trials go where most is free, and to the engine that has what they need', async () => {
  const { engines } = place();
  using _engines = engines;
  using first = await engines.seat(specOf(''), never);
  using second = await engines.seat(specOf(''), never);
  expect([nameOf(first), nameOf(second)]).toEqual(['one', 'other']);
  const spec = specOf('');
  using third = await engines.seat({ ...spec, sandbox: { ...spec.sandbox, needs: ['gpu'] } }, never);
  expect(nameOf(third)).toBe('other');
});

test('a trial that waits moves to the engine that has room first, and one that runs stays', async () => {
  const { engines, enter } = place();
  using _engines = engines;
  using first = await engines.seat(specOf(''), never);
  using second = await engines.seat(specOf(''), never);
  using running = await enter(first);
  const ending = await enter(second);
  using third = await engines.seat(specOf(''), never);
  expect(third.pooled).toBe(first.pooled);
  const waits = enter(third);
  ending[Symbol.dispose]();
  const moved: unknown = await waits.catch((error: unknown) => error);
  expect(moved).toBeInstanceOf(Moved);
  expect(third.pooled).toBe(second.pooled);
  expect(running).toBeDefined();
  using _permit = await enter(third);
  expect(nameOf(third)).toBe('other');
});

test('a trial that waits stays where it is if the engine that came back cannot run it', async () => {
  let isDown = true;
  const findImage: Engine['findImage'] = async () => {
    if (isDown) throw new Error('nobody there');
    return undefined;
  };
  const clock = handClock();
  const { engines, enter } = place({ clock, all: [other, { ...one, findImage }] });
  using _engines = engines;
  await engines.suspect('a trial broke', never);
  const spec = specOf('');
  const needy = { ...spec, sandbox: { ...spec.sandbox, needs: ['gpu'] } };
  using first = await engines.seat(needy, never);
  using _running = await enter(first);
  using second = await engines.seat(needy, never);
  const stop = new AbortController();
  const waits = enter(second, stop.signal);
  isDown = false;
  await clock.pass(60_000);
  expect([nameOf(second), engines.pool.some((engine) => engine.isDown)]).toEqual(['other', false]);
  stop.abort(new Error('enough'));
  await expect(waits).rejects.toThrow('enough');
});

test('a trial that waited while all engines were down begins only where it has room', async () => {
  let isDown = false;
  const findImage: Engine['findImage'] = async () => {
    if (isDown) throw new Error('nobody there');
    return undefined;
  };
  const clock = handClock();
  const all = [one, other].map((engine) => ({ ...engine, findImage }));
  const { engines, enter } = place({ clock, all, concurrency: 2 });
  using _engines = engines;
  using seats = new DisposableStack();
  const begun: Seat[] = [];
  const begin = async () => {
    const seat = seats.use(await engines.seat(specOf(''), never));
    const entering = async (): Promise<Permit> => {
      try {
        const permit = await enter(seat);
        begun.push(seat);
        return permit;
      } catch (error) {
        if (error instanceof Moved) return entering();
        throw error;
      }
    };
    return { seat, permit: entering() };
  };
  const trials = [await begin(), await begin()];
  await clock.pass(60_000);
  await clock.pass(60_000);
  expect(begun.map(nameOf)).toEqual(['one', 'other']);
  trials.push(await begin(), await begin());
  isDown = true;
  await engines.suspect('a trial broke', never);
  await settled();
  isDown = false;
  await clock.pass(60_000);
  expect([begun.length, engines.areAllDown]).toEqual([2, false]);
  const ended = trials[0];
  (await ended?.permit)?.[Symbol.dispose]();
  ended?.seat[Symbol.dispose]();
  for (let wait = 0; wait < 3; wait++) await clock.pass(60_000);
  expect(begun.slice(2).map(nameOf)).toEqual(['one']);
});
