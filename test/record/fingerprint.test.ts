import { expect, test } from 'vitest';
import { fingerprintChanges, mixedTexts, unknownPartsText } from '../../src/record/fingerprint.ts';

const trial = (parts: Record<string, string>) => [
  { caseId: 'a', variant: 'v', parts: { verify: '1', ...parts } },
];

test('another judge or model behind the same name is a difference', () => {
  const changed = fingerprintChanges(
    trial({ 'judge strict': 'x', modelId: 'small', modelAddress: 'here' }),
    trial({ 'judge strict': 'y', modelId: 'large', modelAddress: 'here' }),
  );
  expect(changed).toEqual({
    cases: { a: ['judge strict'] },
    variant: [{ part: 'modelId', a: ['small'], b: ['large'] }],
    unknown: [],
  });
});

test('a difference within one side is not said to be one between both', () => {
  const by = (...judges: string[]) => judges.flatMap((judge) => trial({ 'judge strict': judge }));
  const changed = (a: string[], b: string[]) => fingerprintChanges(by(...a), by(...b))?.cases;
  expect(changed(['x', 'y'], ['y'])).toEqual({ a: ['judge strict within A'] });
  expect(changed(['y'], ['x', 'y'])).toEqual({ a: ['judge strict within B'] });
  expect(changed(['x', 'y'], ['z'])).toEqual({ a: ['judge strict'] });
});

test('what an older Offsite did not note is not known, which is no difference', () => {
  const changed = fingerprintChanges(trial({}), trial({ 'judge strict': 'y', modelId: 'large' }));
  expect(changed).toEqual({ cases: {}, variant: [], unknown: ['judge strict', 'modelId'] });
  expect(unknownPartsText(changed?.unknown ?? [])).toBe(
    'Not known for one side, so it may differ: what answered for judge strict, the model.',
  );
  expect(unknownPartsText([])).toBeUndefined();
});

test('a batch says what its trials of one case and variant do not have in common', () => {
  const one = trial({ modelAddress: 'here', modelId: 'small' });
  expect(mixedTexts([...one, ...trial({ modelAddress: 'there', modelId: 'small' })])).toEqual([
    'not all trials of v had the same address or script of the model',
  ]);
  // The second trial asked no model, and the third is of another case.
  const other = [{ caseId: 'b', variant: 'v', parts: { verify: '2', modelId: 'small' } }];
  expect(mixedTexts([...one, ...trial({}), ...other])).toEqual([]);
});

test('so it does of a model that other cases asked before the batch was resumed', () => {
  const one = trial({ modelAddress: 'here', harness: 'codex 1' });
  const other = { caseId: 'b', variant: 'v', parts: { modelAddress: 'there', harness: 'codex 2' } };
  // Each image has its own version of a harness.
  expect(mixedTexts([...one, other])).toEqual([
    'not all trials of v had the same address or script of the model',
  ]);
  expect(mixedTexts([...one, { ...other, variant: 'w' }])).toEqual([]);
});
