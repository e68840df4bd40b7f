import { expect, test } from 'vitest';
import { runsOf } from './ask.ts';
import { containersOnce } from './containers.ts';
import { batches, died } from './died.ts';
import { eachPlace, place } from './each-place.ts';
import { offsite } from './offsite.ts';

eachPlace();

test('an abandoned batch is reported, closed, and leaves nothing', async () => {
  const { batch, stopped } = await died(place);
  const { exitCode, stdout, stderr } = await offsite(place, ['data', 'abandon', batch]);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toBe(`abandoned batch ${batch}: 2 open trials ended as void\n`);
  expect(await batches(place)).toMatchObject([{ id: batch, state: 'finished', passed: 1, void: 2 }]);
  const runs = await runsOf(place, 'a', 'b', 'c');
  const voided = Object.fromEntries(
    runs.map((run) => [run.case?.id, [run.status, run.distribution?.voided]]),
  );
  expect(voided).toEqual({ a: ['completed', 0], b: ['completed', 1], c: ['completed', 1] });
  expect((await offsite(place, ['data', 'outbox'])).stdout).toBe('nothing waits to be reported\n');
  expect((await offsite(place, ['resume'])).stdout).toMatch(/^nothing to resume in \S+\n$/);
  const why = await offsite(place, ['show', `${stopped}/worker#0`]);
  expect(why.stdout).toContain('it was interrupted, and its batch was abandoned');
  await containersOnce([`offsite.batch=${batch}`], (found) => found.length === 0);
  const again = await offsite(place, ['data', 'abandon', batch]);
  expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining(`batch ${batch} is finished`)]);
});
