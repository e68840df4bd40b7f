import { expect, test } from 'vitest';
import { planParts } from '../../src/agent/run-set.ts';
import { serviceRequests } from '../../src/bounds/callers.ts';
import { noExtras, type SuitePlan } from '../../src/suite/plan.ts';

function planOf(cases: number): SuitePlan {
  const ids = Array.from({ length: cases }, (_, index) => `case-${index}`);
  return {
    file: 'suite.yaml',
    suite: { id: 'many', name: 'many', prompt: { kind: 'text', text: '{{instruction}}' } },
    trials: 2,
    cases: ids.map((id) => ({ request: { id, name: id }, local: noExtras })),
    variants: [],
    judges: [],
  };
}

test.each([
  [1, [1]],
  [100, [100]],
  [101, [100, 1]],
  [250, [100, 100, 50]],
])('%i cases fit into start requests of at most 100, in their order', (cases, sizes) => {
  const plan = planOf(cases);
  const parts = planParts(plan);
  expect(parts.map((part) => part.cases.length)).toEqual(sizes);
  expect(parts.flatMap((part) => part.cases)).toEqual(plan.cases);
  expect(parts.every(({ trials, suite }) => trials === 2 && suite === plan.suite)).toBe(true);
});

test('large cases are divided by their size, so that the service accepts each start', () => {
  const plan = planOf(5);
  for (const { request } of plan.cases) request.verify = 'x'.repeat(serviceRequests.bytes.body / 5);
  expect(planParts(plan).map((part) => part.cases.length)).toEqual([2, 2, 1]);
});
