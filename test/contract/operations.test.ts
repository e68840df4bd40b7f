import { expect, test } from 'vitest';
import { permissions } from '../../src/contract/definition.ts';
import { errorTags } from '../../src/contract/errors.ts';
import { operations } from '../../src/contract/operations.ts';

const specified = [
  'auth.whoami',
  'evals.start',
  'evals.runs.list',
  'evals.rerunCell',
  'evals.reportTrial',
  'evals.cases.list',
  'connectors.integrations',
  'prompts.get',
  'prompts.promote',
];

test('the table has the nine operations of the specification, and marks every other as ours', () => {
  for (const name of specified) expect(operations).toHaveProperty([name]);
  for (const [name, operation] of Object.entries(operations)) {
    expect('ours' in operation && operation.ours === true, name).toBe(!specified.includes(name));
  }
});

test('only operations that start or append something must not be repeated', () => {
  const once = Object.entries(operations).filter(([, { repeatable }]) => !repeatable);
  expect(once.map(([name]) => name)).toEqual(['evals.start', 'evals.rerunCell', 'prompts.write']);
});

test('every operation names a known permission and documented statuses', () => {
  for (const { permission, errors } of Object.values(operations)) {
    if (permission !== undefined) expect(permissions).toContain(permission);
    for (const status of errors) expect(errorTags).toHaveProperty([String(status)]);
  }
});

const aCase = { id: 'c', name: 'C' };
const start = {
  suite: { id: 's', name: 'S', prompt: 'p' },
  cases: [aCase],
  variants: [{ model: 'm' }],
  trials: 1,
};

for (const [what, change, accepted] of [
  ['1 case', { cases: [aCase] }, true],
  ['100 cases', { cases: Array(100).fill(aCase) }, true],
  ['no case', { cases: [] }, false],
  ['101 cases', { cases: Array(101).fill(aCase) }, false],
  ['20 variants', { variants: Array(20).fill({ model: 'm' }) }, true],
  ['no variant', { variants: [] }, false],
  ['21 variants', { variants: Array(21).fill({ model: 'm' }) }, false],
  ['10 trials', { trials: 10 }, true],
  ['0 trials', { trials: 0 }, false],
  ['11 trials', { trials: 11 }, false],
  ['1.5 trials', { trials: 1.5 }, false],
  ['a field more', { priority: 1 }, false],
  ['an id with NUL', { suite: { id: 's\0', name: 'S', prompt: 'p' } }, false],
  ['an id with half a character', { suite: { id: '\ud800', name: 'S', prompt: 'p' } }, false],
] as const) {
  test(`a start request with ${what} is ${accepted ? 'allowed' : 'refused'}`, () => {
    expect(operations['evals.start'].request.safeParse({ ...start, ...change }).success).toBe(accepted);
  });
}

test('whoami takes any object or array, as the specification says', () => {
  const { request } = operations['auth.whoami'];
  for (const body of [{}, { a: 1 }, [], [1]]) expect(request.safeParse(body).success).toBe(true);
  for (const body of [null, 'x', 1]) expect(request.safeParse(body).success).toBe(false);
});
