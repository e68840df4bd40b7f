import { expect, test } from 'vitest';
import { countFinished } from '../daemon/sharing.ts';
import { openFleetPlace } from './fleet-place.ts';

test('two workers run a batch, and its records come back to where it was started', async () => {
  await using fleet = await openFleetPlace();
  const cases = ['a', 'b'].map((id) => ({ id, verify: 'cat done.txt', artifacts: ['done.txt'] }));
  const file = fleet.suite({ cases, trials: 5 });
  await fleet.worker('one', ['-c', '2']);
  await fleet.worker('two', ['-c', '2']);
  const { exitCode, stdout, stderr } = await fleet.run(file, '--junit', `${fleet.place.folder}/junit.xml`);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^all +10 +0 +0 +100 %/m);
  for (const { id } of cases) {
    const [run] = await fleet.runs(id);
    expect(run?.trials?.map(({ status }) => status)).toEqual(Array(5).fill('reported'));
  }
  const { finished, twice } = countFinished(['one', 'two'].map(fleet.folderOf));
  expect(twice).toBe(0);
  expect(finished.reduce((sum, count) => sum + count)).toBe(10);
  expect(Math.min(...finished)).toBeGreaterThan(0);
});
