import { expect, test } from 'vitest';
import { checksBeside, thresholdChanges } from '../../src/record/checks-beside.ts';

test('a later grading shows the threshold that changed, even if its verdict is the same', () => {
  const judged = (threshold: number) => ({
    validations: [{ id: 'a', index: 0, name: 'good reply', exitCode: 0 }],
    judgments: [{ name: 'good reply', score: 0.1, threshold }],
  });
  expect(checksBeside(judged(0.7), judged(0.6))[0]).toEqual({
    kind: 'judgment',
    name: 'good reply',
    was: '0.1 < 0.7',
    now: '0.1 < 0.6',
    changed: true,
  });
  expect(thresholdChanges(judged(0.7), judged(0.05))).toEqual([{ name: 'good reply', was: 0.7, now: 0.05 }]);
  expect(thresholdChanges(judged(0.7), judged(0.7))).toEqual([]);
  expect(checksBeside(judged(0.7), judged(0.05)).map(({ kind, changed }) => [kind, changed])).toEqual([
    ['validation', true],
    ['judgment', true],
  ]);
});
