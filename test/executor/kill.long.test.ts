import { expect, test } from 'vitest';
import { endedRuns, openServingPlace, runsOf, type Serving, startBatch } from './serving-place.ts';

const cases = Array.from({ length: 3 }, (_, n) => ({
  id: `case-${n}`,
  variables: { act: 'sleep 0.5; echo done > done.txt' },
  verify: 'cat done.txt',
}));

/** How many trials of all cases the service has recorded. */
async function completed(serving: Serving): Promise<number> {
  const runs = await Promise.all(cases.map(({ id }) => runsOf(serving, id)));
  const trials = runs.flat().flatMap(({ trials = [] }) => trials);
  return trials.filter(({ status }) => status === 'completed').length;
}

test('6 trials are each recorded once although the server is killed on the way, and no result is made twice', async () => {
  await using at = openServingPlace();
  let serving = await at.serve();
  await startBatch(serving, cases, { trials: 2 });
  for (const enough of [1, 3]) {
    await expect
      .poll(() => completed(serving), { timeout: 60_000, interval: 20 })
      .toBeGreaterThanOrEqual(enough);
    serving.kill('SIGKILL');
    expect(await serving.ended).toMatchObject({ signal: 'SIGKILL' });
    serving = await at.serve();
  }
  for (const { id } of cases) {
    const runs = await endedRuns(serving, id);
    expect(runs).toHaveLength(1);
    expect(runs[0]?.trials?.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(runs[0]?.distribution).toMatchObject({ trials: 2, passed: 2 });
  }
  serving.kill('SIGTERM');
  expect(await serving.ended).toMatchObject({ exitCode: 0 });
  const verdicts = at.attempts().filter(({ ending }) => ending !== 'interrupted');
  expect(verdicts.map(({ ending }) => ending)).toEqual(Array(6).fill('passed'));
  expect(new Set(verdicts.map(({ trial }) => trial)).size).toBe(6);
});

test('of two servers of one data folder one runs the trials, and when it is killed the other continues', async () => {
  await using at = openServingPlace();
  const first = await at.serve();
  const second = await at.serve({ ready: /run in another process of this data folder/ });
  await startBatch(second, cases, { trials: 2 });
  await expect.poll(() => completed(second), { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(2);
  first.kill('SIGKILL');
  await first.ended;
  await second.printed(/platform batches run here/);
  for (const { id } of cases) {
    const [run] = await endedRuns(second, id);
    expect(run?.distribution).toMatchObject({ trials: 2, passed: 2 });
  }
  second.kill('SIGTERM');
  await second.ended;
  const verdicts = at.attempts().filter(({ ending }) => ending !== 'interrupted');
  expect(verdicts.map(({ ending }) => ending)).toEqual(Array(6).fill('passed'));
  expect(new Set(verdicts.map(({ trial }) => trial)).size).toBe(6);
});

test('a server that is told to stop puts its running trials back, and the next one runs them', async () => {
  await using at = openServingPlace();
  const serving = await at.serve();
  const long = { id: 'long', variables: { act: 'until [ -e /tmp/go ]; do sleep 0.1; done' }, verify: 'true' };
  await startBatch(serving, [long]);
  // Its harness has begun once the trial has a sandbox.
  await expect.poll(() => at.attempts().length, { timeout: 60_000 }).toBe(1);
  serving.kill('SIGTERM');
  expect(await serving.ended).toMatchObject({ exitCode: 0 });
  expect(at.attempts().map(({ ending }) => ending)).toEqual(['canceled']);

  at.configure({ profiles: { worker: { run: 'true' } } });
  const next = await at.serve();
  const [run] = await endedRuns(next, 'long');
  expect(run?.distribution).toMatchObject({ trials: 1, passed: 1 });
});
