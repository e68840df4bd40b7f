import { expect, test } from 'vitest';
import { TrialsElsewhere } from '../../src/agent/worker/waiting-runs.ts';

const trial = (key: number) => ({ key, runId: 'r', caseId: 'c', ordinal: 0 });

test('a trial is left to another agent for its time, and nothing is due once that is over', () => {
  let now = 0;
  const elsewhere = new TrialsElsewhere({ monotonic: () => now });
  expect([elsewhere.keys(), elsewhere.nextMs]).toEqual([[], undefined]);
  elsewhere.add(trial(1), 'claimed', 3_000);
  elsewhere.add(trial(2), 'claimed', 1_000);
  expect([elsewhere.keys(), elsewhere.nextMs]).toEqual([[1, 2], 1_000]);
  now = 1_000;
  expect([elsewhere.nextMs, elsewhere.keys()]).toEqual([2_000, [1]]);
  elsewhere.add(trial(1), 'The service was restored', 5_000);
  expect(elsewhere.shown(new Set([1]))).toEqual([
    { run: 'r', case: 'c', ordinal: 0, reason: 'The service was restored', askedAgainInMs: 5_000 },
  ]);
  now = 4_000;
  expect(elsewhere.keys()).toEqual([1]);
  now = 6_000;
  // A worker with nothing else to do would not sleep at all with 0.
  expect(elsewhere.nextMs).toBeUndefined();
});
