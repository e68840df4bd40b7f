import { expect, test } from 'vitest';
import { runsOf } from './ask.ts';
import { batches, died } from './died.ts';
import { eachPlace, place } from './each-place.ts';
import { offsite } from './offsite.ts';

eachPlace();

test('a batch can be ended on this machine alone', async () => {
  const { batch, stopped } = await died(place);
  const { exitCode, stdout, stderr } = await offsite(place, [
    'data',
    'abandon',
    batch,
    '--unreported',
    '--json',
  ]);
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([{ batches: [batch], voided: 0, withdrawn: 2, unreported: 1 }]);
  expect(await batches(place)).toMatchObject([{ id: batch, state: 'finished', passed: 1, void: 0 }]);
  expect((await offsite(place, ['resume'])).stdout).toMatch(/^nothing to resume in \S+\n$/);
  const [run] = await runsOf(place, stopped);
  expect(run?.trials?.map(({ status }) => status)).toEqual(['running']);
});
