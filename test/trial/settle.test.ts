import { expect, test } from 'vitest';
import { settle } from '../../src/trial/grading.ts';

const passed = { doubt: undefined, found: { verdict: 'passed' as const } };
const failed = { doubt: undefined, found: { verdict: 'failed' as const } };
const none = (doubt: string) => ({ doubt, found: { verdict: 'void' as const } });
type Graded = typeof passed | typeof failed | ReturnType<typeof none>;

/** Settles a first grading; further ones of the work, and of an untouched workspace, come in this order. */
async function settled(first: Graded, works: Graded[], untouched: Graded[], areModelsFine = true) {
  const next = async (list: Graded[]) => {
    const graded = list.shift();
    if (!graded) throw new Error('it was graded more often than expected');
    return graded;
  };
  const outcome = await settle<Graded>(first, {
    again: () => next(works),
    untouched: () => next(untouched),
    areModelsFine: async () => areModelsFine,
  });
  expect([works, untouched]).toEqual([[], []]);
  return [outcome.graded.found.verdict, outcome.isTheAgents];
}

test('a grading with a verdict stands, and nothing else is graded', async () => {
  expect(await settled(failed, [], [])).toEqual(['failed', false]);
});

test('without a verdict on an untouched workspace either, a trial is void', async () => {
  expect(await settled(none('a'), [], [none('a')])).toEqual(['void', false]);
});

test('what the machine stumbled over once does not count', async () => {
  expect(await settled(none('a'), [passed], [passed])).toEqual(['passed', false]);
  expect(await settled(none('a'), [failed], [passed])).toEqual(['failed', false]);
});

test('work that cannot be graded twice, while an untouched workspace can, is the reason', async () => {
  expect(await settled(none('a'), [none('a')], [failed])).toEqual(['void', true]);
});

test('so is work that fails in another way each time', async () => {
  expect(await settled(none('a'), [none('b')], [failed, failed])).toEqual(['void', true]);
});

test('a machine that breaks meanwhile makes the trial void', async () => {
  expect(await settled(none('a'), [none('b')], [failed, none('b')])).toEqual(['void', false]);
});

test('models that answer nothing make the trial void, whatever the control says', async () => {
  expect(await settled(none('a'), [], [failed], false)).toEqual(['void', false]);
});
