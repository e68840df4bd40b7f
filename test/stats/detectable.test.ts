import { expect, test } from 'vitest';
import {
  casesToShowWorse,
  couldBeWorse,
  mostMustFall,
  trialsToShowWorse,
} from '../../src/stats/further-trials.ts';

const cases = (count: number, passed: number, failed: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `${index}`, passed, failed, void: 0 }));

test('with one trial of a case, it takes seven cases to show a fall to nothing', () => {
  expect(casesToShowWorse(1, 0.95)).toBe(7);
  expect(couldBeWorse(cases(7, 1, 0), cases(7, 1, 0), 0.95)).toBe(true);
  expect(couldBeWorse(cases(6, 1, 0), cases(6, 1, 0), 0.95)).toBe(false);
});

test('more trials need fewer cases, but three cases are too few whatever their trials', () => {
  expect(casesToShowWorse(5, 0.95)).toBe(4);
  expect(trialsToShowWorse(5, 0.95)).toBe(2);
  expect(trialsToShowWorse(3, 0.95)).toBeUndefined();
});

test('cases that failed before cannot get worse', () => {
  expect(couldBeWorse(cases(40, 0, 1), cases(40, 1, 0), 0.95)).toBe(false);
  expect(couldBeWorse([], [], 0.95)).toBe(false);
});

test('four cases with four trials show only a fall of all of them, and many cases one of fewer than half', () => {
  expect(mostMustFall(cases(4, 4, 0), 4, 0.95)).toBe(4);
  expect(mostMustFall(cases(2, 4, 0), 4, 0.95)).toBe(Number.POSITIVE_INFINITY);
  expect(mostMustFall(cases(40, 1, 0), 1, 0.95)).toBeUndefined();
  expect(mostMustFall(cases(40, 0, 1), 1, 0.95)).toBe(Number.POSITIVE_INFINITY);
});
