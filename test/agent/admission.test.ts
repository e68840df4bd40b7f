import { expect, test } from 'vitest';
import { Admission, type Applicant } from '../../src/agent/admission.ts';
import { handClock, settled } from './test-clock.ts';

const never = new AbortController().signal;
const gib = 2 ** 30;
const sandbox = { cpus: 1, memory: gib };
const size = { sandbox, services: { cpus: 0, memory: 0 } };
const free: Applicant = { spec: {}, model: 'any', maxParallel: undefined, size };
const room = { cpus: 4, memory: 6 * gib };

function open(concurrency: number, requireRoom: () => Promise<void> = async () => undefined) {
  const clock = handClock();
  const admission = new Admission({ clock, concurrency, room, requireRoom });
  const entered: Disposable[] = [];
  const enter = (applicant = free) => {
    admission.enter(applicant, never).then((place) => entered.push(place));
  };
  return { clock, admission, entered, enter };
}

test('trials begin one after another with a pause, so that a first wave does not reach the engine as one', async () => {
  const { clock, entered, enter } = open(3);
  for (let trial = 0; trial < 3; trial++) enter();
  await settled();
  const begun = [entered.length];
  for (let pause = 0; pause < 2; pause++) {
    await clock.pass(1_000);
    begun.push(entered.length);
  }
  expect(begun).toEqual([1, 2, 3]);
});

test('a trial that begins long after the last waits for nothing, nor does one after the clock was set back', async () => {
  const { clock, entered, enter } = open(3);
  enter();
  await settled();
  await clock.pass(1_000);
  enter();
  await settled();
  expect(entered.length).toBe(2);
  clock.set(0);
  enter();
  await settled();
  expect(entered.length).toBe(3);
});

test('a model that takes few requests at a time holds back its own trials and no others', async () => {
  const { clock, admission, entered, enter } = open(4);
  const narrow: Applicant = { ...free, model: 'narrow', maxParallel: 1 };
  for (const applicant of [narrow, narrow, narrow, free]) enter(applicant);
  await settled();
  await clock.pass(1_000);
  expect(entered.length).toBe(2);
  expect(admission.trials.held).toBe(2);
});

test('nothing begins where there is no room, and the place is free again', async () => {
  const { admission } = open(1, async () => {
    throw new Error('the disk is full');
  });
  await expect(admission.enter(free, never)).rejects.toThrow('the disk is full');
  expect(admission.trials.held).toBe(0);
});

test('the number of trials at a time can be changed while they run', async () => {
  const { clock, admission, entered, enter } = open(1);
  for (let trial = 0; trial < 3; trial++) enter();
  await settled();
  expect(entered.length).toBe(1);
  admission.concurrency = 2;
  await settled();
  await clock.pass(1_000);
  expect(entered.length).toBe(2);
});

/** How many of these trials run at a time, of 4 that may by their number. */
async function atATime(...sizes: Applicant['size'][]): Promise<number> {
  const { clock, entered, enter } = open(4);
  for (const size of sizes) enter({ ...free, size });
  for (let pause = 0; pause < sizes.length; pause++) {
    await settled();
    await clock.pass(1_000);
  }
  return entered.length;
}

const withServices = (cpus: number, memory: number) => ({ sandbox, services: { cpus, memory } });

test('services count with their memory and their processors, and trials without services as before', async () => {
  expect(await atATime(size, size, size, size)).toBe(4);
  const db = withServices(0.1, 2 * gib);
  expect(await atATime(db, db, db)).toBe(2);
  const busy = withServices(2, gib / 8);
  expect(await atATime(busy, busy)).toBe(1);
  expect(await atATime(busy, size, size)).toBe(2);
  // Larger than the machine: alone.
  expect(await atATime(withServices(8, gib), size)).toBe(1);
  // More than the processors, as somebody asked for with --concurrency: no services are among them.
  const large = { sandbox: { cpus: 3, memory: gib }, services: { cpus: 0, memory: 0 } };
  expect(await atATime(large, large, large, large)).toBe(4);
});

test('a trial with services waits for those before it, and those behind it wait as well', async () => {
  const { clock, entered, enter, admission } = open(4);
  enter();
  enter({ ...free, size: withServices(1, 5 * gib) });
  enter();
  const pass = async () => {
    await settled();
    await clock.pass(1_000);
  };
  await pass();
  expect([entered.length, admission.trials.waiting]).toEqual([1, 2]);
  entered[0]?.[Symbol.dispose]();
  await pass();
  expect([entered.length, admission.trials.held]).toEqual([2, 1]);
  entered[1]?.[Symbol.dispose]();
  await pass();
  expect(entered.length).toBe(3);
});

test('a model whose limit adapts lets twice as many trials begin, and more when the limit rises', async () => {
  const { clock, entered, enter } = open(10);
  const moved: ((limit: number) => void)[] = [];
  const adapting = {
    limit: 1,
    onMove(listener: (limit: number) => void) {
      moved.push(listener);
      return { [Symbol.dispose]: () => undefined };
    },
  };
  const applicant: Applicant = { ...free, model: 'narrow', maxParallel: 32, adapting };
  const begun = async () => {
    for (let trial = 0; trial < 5; trial++) await clock.pass(1_000);
    await settled();
    return entered.length;
  };
  for (let trial = 0; trial < 5; trial++) enter(applicant);
  expect(await begun()).toBe(2);
  for (const move of moved) move(2);
  expect(await begun()).toBe(4);
});

/** A trial of its own, as the worker has it. */
const trialOf = (model = 'any', maxParallel?: number): Applicant => ({
  ...free,
  spec: {},
  model,
  maxParallel,
});

test('the next trial is the one that asked first for its permit', async () => {
  const { clock, entered, enter, admission } = open(1);
  const [first, second, third] = [trialOf(), trialOf(), trialOf()];
  enter(first);
  expect(admission.next).toBeUndefined();
  for (const one of [second, third]) enter(one);
  await settled();
  expect([admission.next, admission.isWaiting(third.spec)]).toEqual([second, true]);
  entered[0]?.[Symbol.dispose]();
  await settled();
  expect([admission.next, admission.isWaiting(second.spec)]).toEqual([third, false]);
  await clock.pass(1_000);
});

test('a trial that waits for its model is the next one only if no other model could free its permit', async () => {
  const { clock, enter, admission } = open(2);
  const waiting = trialOf('narrow', 1);
  for (const one of [trialOf('narrow', 1), waiting]) enter(one);
  await settled();
  expect(admission.next).toBe(waiting);
  enter(trialOf('wide'));
  await settled();
  expect(admission.next).toBeUndefined();
  const beside = trialOf('wide');
  enter(beside);
  await settled();
  expect([admission.next, admission.isWaiting(waiting.spec)]).toEqual([beside, true]);
  await clock.pass(1_000);
});
