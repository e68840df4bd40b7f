import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { writeHarborTask } from '../cli/task-folder.ts';
import { type FleetPlace, openFleetPlace } from './fleet-place.ts';

/** A suite of 101 tasks, which is two batches. */
function largeSuite(fleet: FleetPlace): string {
  for (let index = 0; index <= 100; index++)
    writeHarborTask(fleet.place, `task-${String(index).padStart(3, '0')}`);
  fleet.suite({
    cases: [],
    config: { advanced: { images: { 'ubuntu:24.04': 'offsite/base' }, pull: 'never' } },
  });
  const suite = { suite: { id: 'many', prompt: 'Do it.' }, tasks: { path: 'tasks' } };
  const variants = [{ name: 'worker', model: 'none', harness: 'command', profile: 'worker' }];
  return fleet.place.write('many.yaml', stringify({ ...suite, variants }));
}

test('a suite of more cases than a batch takes becomes several batches, which are watched as one', async () => {
  await using fleet = await openFleetPlace();
  const file = largeSuite(fleet);
  const large = (await fleet.started(file)).split('\n');
  expect(large).toHaveLength(2);
  for (const id of large) await fleet.client.workflow.getHandle(id).terminate();
  expect(await fleet.runs('task-000')).toHaveLength(1);
  expect(await fleet.runs('task-100')).toHaveLength(1);

  await fleet.worker('one', ['-c', '2']);
  const small = ['a', 'b'].map((id) => ({ id, verify: 'cat done.txt' }));
  const ids: string[] = [];
  for (const one of small) ids.push(await fleet.started(fleet.suite({ cases: [one], trials: 3 })));
  const { exitCode, stdout, stderr } = await fleet.command(['attach', ...ids]).ended;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^a .*\n(.*\n)*b .*\n(.*\n)*all +6 +0 +0 +100 %/m);
});

test('who interrupts the start of a set is told which batches run and which cases do not', async () => {
  await using fleet = await openFleetPlace();
  const { service } = fleet;
  const starts = () => service.asked.filter((operation) => operation === 'evals.start').length;
  const starting = fleet.command(['run', largeSuite(fleet), '--detach']);
  await expect.poll(starts, { timeout: 60_000, interval: 1 }).toBe(1);
  service.down.add('evals.start');
  await expect.poll(starts, { timeout: 60_000 }).toBeGreaterThan(1);
  starting.kill('SIGINT');
  const { exitCode, stderr } = await starting.ended;
  expect(exitCode).toBe(130);
  expect(stderr).toMatch(/1 of 2 batches started and continue: offsite fleet attach \S+/);
  expect(stderr).toContain('1 case did not start, from task-100 on.');
});
