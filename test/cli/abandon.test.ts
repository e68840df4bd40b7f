import { afterEach, beforeEach, expect, test } from 'vitest';
import { runsOf } from './ask.ts';
import { containersOnce } from './containers.ts';
import { offsite, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
beforeEach(() => {
  place = openPlace();
});
afterEach(() => place[Symbol.dispose]());

/** Runs one trial of three to its end, and stops for good in the second. Resolves with the batch's id. */
async function died(): Promise<string> {
  const acts = { a: 'true', b: 'sleep 600', c: 'true' };
  const cases = Object.entries(acts).map(([id, act]) => ({ id, variables: { act }, verify: 'true' }));
  const running = start(place, ['run', place.suite({ cases }), '-c', '1']);
  await running.printed(/a · worker #0 +passed/);
  const [batch] = await batches();
  // The container of the second trial is there.
  await containersOnce([`offsite.batch=${batch?.id}`], (found) => found.length > 0);
  const atWork = await offsite(place, ['abandon', batch?.id ?? '']);
  expect(atWork.exitCode).toBe(2);
  expect(atWork.stderr).toContain(`another process works on batch ${batch?.id}`);
  running.kill('SIGKILL');
  await running.ended;
  return batch?.id ?? '';
}

async function batches(): Promise<{ id: string; state: string; passed: number; void: number }[]> {
  return JSON.parse((await offsite(place, ['batches', '--json'])).stdout);
}

test('an abandoned batch is reported, closed, and leaves nothing', { timeout: 240_000 }, async () => {
  const batch = await died();
  const { exitCode, stdout, stderr } = await offsite(place, ['abandon', batch]);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toBe(`abandoned batch ${batch}: 2 open trials ended as void\n`);
  expect(await batches()).toMatchObject([{ id: batch, state: 'finished', passed: 1, void: 2 }]);
  const runs = await runsOf(place, 'a', 'b', 'c');
  const voided = Object.fromEntries(
    runs.map((run) => [run.case?.id, [run.status, run.distribution?.voided]]),
  );
  expect(voided).toEqual({ a: ['completed', 0], b: ['completed', 1], c: ['completed', 1] });
  expect((await offsite(place, ['outbox'])).stdout).toBe('nothing waits to be reported\n');
  expect((await offsite(place, ['resume'])).stdout).toBe('nothing to resume\n');
  const why = await offsite(place, ['show', 'b/worker#0']);
  expect(why.stdout).toContain('it was interrupted, and its batch was abandoned');
  await containersOnce([`offsite.batch=${batch}`], (found) => found.length === 0);
  const again = await offsite(place, ['abandon', batch]);
  expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining(`batch ${batch} is finished`)]);
});

test('a batch can be ended on this machine alone', { timeout: 240_000 }, async () => {
  const batch = await died();
  const { exitCode, stdout, stderr } = await offsite(place, ['abandon', batch, '--unreported', '--json']);
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([{ batches: [batch], voided: 0, withdrawn: 2, unreported: 0 }]);
  expect(await batches()).toMatchObject([{ id: batch, state: 'finished', passed: 1, void: 0 }]);
  expect((await offsite(place, ['resume'])).stdout).toBe('nothing to resume\n');
  const [b] = await runsOf(place, 'b');
  expect(b?.trials?.map(({ status }) => status)).toEqual(['running']);
});
