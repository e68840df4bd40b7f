import { expect, test } from 'vitest';
import { fingerprintChanges, type KnownFingerprint } from '../../src/record/fingerprint.ts';
import { compareTrials } from '../../src/viewer/model/compare.ts';

const trial = (caseId: string, verdict: 'passed' | 'failed') => {
  return { caseId, caseName: caseId, variant: 'v', verdict, state: 'finished' } as never;
};

test('a case whose validator changed is neither fixed nor counted', () => {
  const variant = { model: 'm', harness: 'codex 1', profile: 'none', sandbox: '1' };
  const of = (caseId: string, parts: object): KnownFingerprint => {
    return { caseId, variant: 'v', parts: { ...variant, ...parts } };
  };
  const before = [of('a', { prompt: '1', validator: '1' }), of('b', { prompt: '1' })];
  const after = [
    of('a', { prompt: '1', validator: '2', user: '3' }),
    of('b', { prompt: '1', harness: 'codex 2' }),
    of('c', {}),
  ];
  const changed = fingerprintChanges(before, after);
  expect(changed).toEqual({
    cases: { a: ['validations', 'user'] },
    variant: [{ part: 'harness', a: ['codex 1'], b: ['codex 2'] }],
    unknown: [],
  });
  const side = (fingerprints: KnownFingerprint[], ...trials: never[]) => {
    return { batch: { id: 'batch', marks: [] } as never, variant: 'v', fingerprints, trials };
  };
  const compared = compareTrials(
    side(before, trial('a', 'failed'), trial('b', 'passed')),
    side(after, trial('a', 'passed'), trial('b', 'passed')),
  );
  expect(compared.cases).toMatchObject([
    { caseId: 'a', change: 'redefined', parts: ['validations', 'user'] },
    { caseId: 'b', change: 'same' },
  ]);
  expect(compared.difference.cases).toBe(1);
  expect(fingerprintChanges([], after)).toBeUndefined();
  // A stranger's record names its parts as it likes.
  const odd = fingerprintChanges([of('a', { constructor: '1' })], [of('a', { constructor: '2' })]);
  expect(odd?.cases).toEqual({ a: ['constructor'] });
  // Two definitions on one side are two things, even if the other side has one of them.
  const twice = [...before, of('b', { prompt: '2' })];
  expect(fingerprintChanges(twice, after)?.cases).toMatchObject({ b: ['prompt within A'] });
});
