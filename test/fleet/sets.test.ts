import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { writeHarborTask } from '../cli/task-folder.ts';
import { openFleetPlace } from './fleet-place.ts';

test('a suite of more cases than a batch takes becomes several batches, which are watched as one', async () => {
  await using fleet = await openFleetPlace();
  const many = Array.from({ length: 101 }, (_, index) => `task-${String(index).padStart(3, '0')}`);
  for (const id of many) writeHarborTask(fleet.place, id);
  fleet.suite({ cases: [], config: { images: { 'ubuntu:24.04': 'offsite/base' }, pull: 'never' } });
  const suite = { suite: { id: 'many', prompt: 'Do it.' }, tasks: { path: 'tasks' } };
  const variants = [{ name: 'worker', model: 'none', harness: 'command', profile: 'worker' }];
  const file = fleet.place.write('many.yaml', stringify({ ...suite, variants }));
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
}, 300_000);
