import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFleetPlace } from './fleet-place.ts';

test('only the void trials of a batch run again, in a workflow of their own', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({
    cases: [
      { id: 'good', verify: 'cat done.txt' },
      { id: 'broken', prepare: 'exit 1', verify: 'cat done.txt' },
    ],
    trials: 2,
  });
  await fleet.worker('one', ['-c', '2']);
  const batch = await fleet.started(file);
  expect(await fleet.client.workflow.getHandle(batch).result()).toMatchObject({ passed: 2, void: 2 });
  const statuses = async (caseId: string) =>
    (await fleet.runs(caseId)).map(({ trials = [] }) => trials.map(({ status }) => status));
  await expect.poll(() => statuses('broken'), { timeout: 60_000 }).toEqual([['voided', 'voided']]);

  const again = await fleet.command(['rerun', batch, '--json', '--detach']).ended;
  expect(again.exitCode, again.stderr).toBe(0);
  const { rerun, trials } = JSON.parse(again.stdout);
  expect(trials).toBe(2);
  expect(rerun).toMatch(new RegExp(`^${batch}/rerun-`));
  // Another machine can watch it, and bring its records.
  const elsewhere = join(fleet.place.folder, 'elsewhere');
  const watching = await fleet.command(['attach', rerun, '--json'], {}, elsewhere).ended;
  expect(JSON.parse(watching.stdout).fleet).toMatchObject({ scheduled: 2, void: 2, passed: 0 });
  expect(await statuses('broken')).toEqual([
    ['voided', 'voided'],
    ['voided', 'voided'],
  ]);
  expect(await statuses('good')).toEqual([['reported', 'reported']]);

  // The newest run counts: two trials, and not four.
  const third = await fleet.command(['rerun', batch]).ended;
  expect(third.stderr).toMatch(/2 trials of 1 cell run again/);
  expect(await statuses('broken')).toHaveLength(3);
});

test('without void trials, nothing runs again', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'good', verify: 'cat done.txt' }] });
  await fleet.worker('one', ['-c', '1']);
  expect((await fleet.run(file)).exitCode).toBe(0);
  const batch = (await fleet.runs('good'))[0]?.batchId ?? '';
  const { exitCode, stderr } = await fleet.command(['rerun', batch]).ended;
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/the newest runs have no void trials/);
  expect(await fleet.runs('good')).toHaveLength(1);
});
