import { expect, test } from 'vitest';
import { type Fault, settle } from '../../src/trial/blame.ts';
import type { JudgeAnswer } from '../../src/validate/model-calls.ts';

interface Graded {
  fault: Fault | undefined;
}

const verdict: Graded = { fault: undefined };
const machine = (name: string): Graded => ({ fault: { from: 'machine', name } });
const checks: Graded = { fault: { from: 'checks', name: 'no verdict' } };
const judge: Graded = { fault: { from: 'judge', name: 'no verdict' } };

/** What further gradings of the work, and the controls, have in this order. */
interface Next {
  works?: Graded[];
  untouched?: Graded[];
  /** Undefined: there is no solution. */
  solved?: Graded[];
  /** How a judge answers without the work. */
  answers?: JudgeAnswer[];
}

/** Whose fault it is; `graded` if a verdict stands. */
async function settled(first: Graded, { works = [], untouched = [], solved, answers = [] }: Next = {}) {
  const next = async <Value>(list: Value[]): Promise<Value> => {
    if (list.length === 0) throw new Error('more was tried than expected');
    return list.shift() as Value;
  };
  const { blamed } = await settle<Graded>(first, 'acted', {
    again: () => next(works),
    untouched: () => next(untouched),
    solved: solved && (() => next(solved)),
    askJudge: () => next(answers),
  });
  expect([works, untouched, solved ?? [], answers]).toEqual([[], [], [], []]);
  return blamed?.blame ?? 'graded';
}

test('without a verdict on an untouched workspace either, the suite or the machine is at fault', async () => {
  expect(await settled(checks, { untouched: [checks] })).toBe('suite');
  expect(await settled(machine('a'), { untouched: [machine('b')] })).toBe('machine');
  expect(await settled(checks, { untouched: [machine('a')] })).toBe('machine');
});

test('checks that give a verdict only for work that is done have one for the solution', async () => {
  const next = () => ({ untouched: [checks], solved: [verdict] });
  expect(await settled(checks, { ...next(), works: [checks] })).toBe('agent');
  expect(await settled(checks, { ...next(), works: [verdict] })).toBe('graded');
  expect(await settled(checks, { untouched: [checks], solved: [checks] })).toBe('suite');
});

test('where the work and an untouched workspace fail in different ways, nobody is blamed', async () => {
  expect(await settled(machine('a'), { untouched: [checks] })).toBe('unknown');
  expect(await settled(machine('a'), { untouched: [checks], solved: [checks] })).toBe('unknown');
});

test('what the machine stumbled over once does not count', async () => {
  expect(await settled(machine('a'), { untouched: [verdict], works: [verdict] })).toBe('graded');
});

test('work that cannot be graded twice, while an untouched workspace can, is the reason', async () => {
  expect(await settled(machine('a'), { untouched: [verdict], works: [machine('a')] })).toBe('agent');
  expect(await settled(checks, { untouched: [verdict], works: [checks] })).toBe('agent');
});

test('so is work that fails in another way each time', async () => {
  const next = { untouched: [verdict, verdict], works: [machine('b')] };
  expect(await settled(machine('a'), next)).toBe('agent');
});

test('the control that is looked at again is the one that had a verdict', async () => {
  const next = (after: Graded) => ({ untouched: [checks], solved: [verdict, after], works: [machine('b')] });
  expect(await settled(machine('a'), next(verdict))).toBe('agent');
  expect(await settled(machine('a'), next(machine('c')))).toBe('unknown');
});

test('where the machine breaks meanwhile, nobody is blamed', async () => {
  const next = { untouched: [verdict, machine('c')], works: [machine('b')] };
  expect(await settled(machine('a'), next)).toBe('unknown');
});

test('a judge that answers nothing without the work either is at fault', async () => {
  expect(await settled(judge, { answers: ['silent'] })).toBe('model');
  const later = { answers: ['answers', 'silent'] as JudgeAnswer[], untouched: [verdict], works: [judge] };
  expect(await settled(judge, later)).toBe('model');
});

test('a judge that answers each time without the work, and never with it, shows that the work is the reason', async () => {
  const twice: JudgeAnswer[] = ['answers', 'answers'];
  expect(await settled(judge, { answers: twice, untouched: [verdict], works: [judge] })).toBe('agent');
  expect(await settled(judge, { answers: ['answers'], untouched: [verdict], works: [verdict] })).toBe(
    'graded',
  );
  expect(await settled(judge, { answers: ['answers'], untouched: [judge] })).toBe('unknown');
});
