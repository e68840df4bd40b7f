import { expect, test } from 'vitest';
import { Gate } from '../../src/agent/gate.ts';
import { settled } from './test-clock.ts';

const never = new AbortController().signal;

/** Asks for a place; tells when it is got. */
function ask(gate: Gate, signal = never) {
  const asked: { place?: Disposable } = {};
  gate.enter(signal).then(
    (place) => {
      asked.place = place;
    },
    () => undefined,
  );
  return asked;
}

test('lets in as many as its limit, the others in the order in which they came', async () => {
  const gate = new Gate(2);
  const [a, b, c, d] = [ask(gate), ask(gate), ask(gate), ask(gate)];
  await settled();
  expect([a.place, b.place, c.place, d.place].map((place) => place !== undefined)).toEqual([
    true,
    true,
    false,
    false,
  ]);
  a.place?.[Symbol.dispose]();
  await settled();
  expect([c.place !== undefined, d.place !== undefined]).toEqual([true, false]);
  expect([gate.inside, gate.waiting]).toEqual([2, 1]);
});

test('lets more in as soon as the limit is raised, and none out when it is lowered', async () => {
  const gate = new Gate(1);
  const asked = [ask(gate), ask(gate), ask(gate)];
  await settled();
  gate.limit = 3;
  await settled();
  expect(asked.every(({ place }) => place !== undefined)).toBe(true);
  gate.limit = 1;
  const late = ask(gate);
  asked[0]?.place?.[Symbol.dispose]();
  asked[1]?.place?.[Symbol.dispose]();
  await settled();
  expect([gate.inside, late.place]).toEqual([1, undefined]);
  asked[2]?.place?.[Symbol.dispose]();
  await settled();
  expect(late.place).toBeDefined();
});

test('a place given up twice makes room once', async () => {
  const gate = new Gate(1);
  const first = await gate.enter(never);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(gate.inside).toBe(0);
});

test('who gives up waiting leaves the queue, and holds nobody up', async () => {
  const gate = new Gate(1);
  const first = await gate.enter(never);
  const impatient = new AbortController();
  const second = gate.enter(impatient.signal);
  const third = ask(gate);
  impatient.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
  first[Symbol.dispose]();
  await settled();
  expect(third.place).toBeDefined();
});
