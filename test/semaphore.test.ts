import { expect, test } from 'vitest';
import { Semaphore } from '../src/base/semaphore.ts';
import { settled } from './agent/test-clock.ts';

const never = new AbortController().signal;

/** Asks for a permit; tells when it has it. */
function ask(semaphore: Semaphore, signal = never) {
  const asked: { permit?: Disposable } = {};
  semaphore.acquire(signal).then(
    (permit) => {
      asked.permit = permit;
    },
    () => undefined,
  );
  return asked;
}

test('gives as many permits as its limit, the others in the order in which they came', async () => {
  const semaphore = new Semaphore(2);
  const [a, b, c, d] = [ask(semaphore), ask(semaphore), ask(semaphore), ask(semaphore)];
  await settled();
  expect([a.permit, b.permit, c.permit, d.permit].map((permit) => permit !== undefined)).toEqual([
    true,
    true,
    false,
    false,
  ]);
  a.permit?.[Symbol.dispose]();
  await settled();
  expect([c.permit !== undefined, d.permit !== undefined]).toEqual([true, false]);
  expect([semaphore.held, semaphore.waiting]).toEqual([2, 1]);
});

test('gives more as soon as the limit is raised, and takes none back when it is lowered', async () => {
  const semaphore = new Semaphore(1);
  const asked = [ask(semaphore), ask(semaphore), ask(semaphore)];
  await settled();
  semaphore.limit = 3;
  await settled();
  expect(asked.every(({ permit }) => permit !== undefined)).toBe(true);
  semaphore.limit = 1;
  const late = ask(semaphore);
  asked[0]?.permit?.[Symbol.dispose]();
  asked[1]?.permit?.[Symbol.dispose]();
  await settled();
  expect([semaphore.held, late.permit]).toEqual([1, undefined]);
  asked[2]?.permit?.[Symbol.dispose]();
  await settled();
  expect(late.permit).toBeDefined();
});

test('a permit given back twice counts once', async () => {
  const semaphore = new Semaphore(1);
  const first = await semaphore.acquire(never);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(semaphore.held).toBe(0);
});

test('a caller that gives up waiting leaves the queue, and holds nobody up', async () => {
  const semaphore = new Semaphore(1);
  const first = await semaphore.acquire(never);
  const impatient = new AbortController();
  const second = semaphore.acquire(impatient.signal);
  const third = ask(semaphore);
  impatient.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
  first[Symbol.dispose]();
  await settled();
  expect(third.permit).toBeDefined();
});
