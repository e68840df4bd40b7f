import { expect, test } from 'vitest';
import { changedParts } from '../../src/comparison/changed-parts.ts';
import { compareTrials } from '../../src/viewer/model/compare.ts';

const trial = (caseId: string, verdict: 'passed' | 'failed') => {
  return { caseId, caseName: caseId, verdict, state: 'finished' } as never;
};

test('a case whose validator changed is neither fixed nor counted', () => {
  const before = { a: { prompt: '1', validator: '1' }, b: { prompt: '1' } };
  const after = { a: { prompt: '1', validator: '2', user: '3' }, b: { prompt: '1' }, c: {} };
  const changed = changedParts(before, after);
  expect(changed).toEqual({ a: ['validator', 'user'] });
  const compared = compareTrials(
    [trial('a', 'failed'), trial('b', 'passed')],
    [trial('a', 'passed'), trial('b', 'passed')],
    0.95,
    changed,
  );
  expect(compared.cases).toMatchObject([
    { caseId: 'a', change: 'redefined', parts: ['validator', 'user'] },
    { caseId: 'b', change: 'same' },
  ]);
  expect(compared.rates.cases).toHaveLength(1);
  expect(changedParts(undefined, after)).toBeUndefined();
});
