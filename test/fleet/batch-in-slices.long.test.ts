import { expect, test } from 'vitest';
import { countFinished } from '../daemon/sharing.ts';
import { openFleetPlace } from './fleet-place.ts';

test('two workers run a batch in slices, which is one batch for all who watch it', async () => {
  await using fleet = await openFleetPlace();
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  const file = fleet.suite({ cases: ids.map((id) => ({ id, verify: 'cat done.txt' })), trials: 4 });
  await fleet.worker('one', ['-c', '2']);
  await fleet.worker('two', ['-c', '2']);
  const { exitCode, stdout, stderr } = await fleet.run(file, '--slice', '8', '--window', '4');
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^all +24 +0 +0 +100 %/m);
  const reported = (await Promise.all(ids.map((id) => fleet.runs(id))))
    .flatMap(([run]) => run?.trials ?? [])
    .filter(({ status }) => status === 'reported');
  expect(reported).toHaveLength(24);
  const { finished, twice } = countFinished(['one', 'two'].map(fleet.folderOf));
  expect(twice).toBe(0);
  expect(finished.reduce((sum, count) => sum + count)).toBe(24);
  const query = "WorkflowType = 'offsiteSlice'";
  expect(await Array.fromAsync(fleet.client.workflow.list({ query }))).toHaveLength(3);
}, 500_000);
