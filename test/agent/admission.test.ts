import { expect, test } from 'vitest';
import { Admission, type Applicant } from '../../src/agent/admission.ts';
import { handClock, settled } from './test-clock.ts';

const never = new AbortController().signal;
const free: Applicant = { model: 'any', maxParallel: undefined };

function open(concurrency: number, requireRoom: () => Promise<void> = async () => undefined) {
  const clock = handClock();
  const admission = new Admission({ clock, concurrency, requireRoom });
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
  const narrow: Applicant = { model: 'narrow', maxParallel: 1 };
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
