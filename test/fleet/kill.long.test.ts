import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type FleetPlace, openFleetPlace } from './fleet-place.ts';

const names = ['one', 'two'];
const caseIds = ['a', 'b'];
const cases = caseIds.map((id) => ({ id, verify: 'cat done.txt' }));

async function reported(fleet: FleetPlace): Promise<number> {
  const runs = (await Promise.all(caseIds.map((id) => fleet.runs(id)))).flat();
  return runs.flatMap(({ trials = [] }) => trials).filter(({ status }) => status === 'reported').length;
}

/** How many reports of each trial workers have delivered. */
function deliveries(fleet: FleetPlace): Map<string, number> {
  const times = new Map<string, number>();
  for (const name of names) {
    using ledger = new Ledger(fleet.folderOf(name), systemClock);
    const rows = ledger.records.all(
      `SELECT runs.id, trials.ordinal FROM reports JOIN trials ON trials.key = reports.trial
         JOIN runs ON runs.key = trials.run WHERE reports.state = 'delivered'`,
    );
    for (const { id, ordinal } of rows)
      times.set(`${id}/${ordinal}`, (times.get(`${id}/${ordinal}`) ?? 0) + 1);
  }
  return times;
}

const soon = { timeout: 180_000, interval: 200 };

test('workers that are killed lose no trial and report none twice', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases, trials: 10 });
  const workers = await Promise.all(names.map((name) => fleet.worker(name, ['-c', '2'])));
  const batch = await fleet.started(file);
  for (const [index, count] of [3, 8].entries()) {
    await expect.poll(() => reported(fleet), soon).toBeGreaterThanOrEqual(count);
    workers[index]?.kill('SIGKILL');
    await workers[index]?.ended;
    workers[index] = await fleet.worker(names[index] ?? '', ['-c', '2']);
  }
  const outcome = await fleet.client.workflow.getHandle(batch).result();
  expect(outcome).toMatchObject({ passed: 20, failed: 0, void: 0, lost: 0 });
  await expect.poll(() => reported(fleet), soon).toBe(20);
  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map(({ ended }) => ended));
  const times = deliveries(fleet);
  expect(times.size).toBe(20);
  expect(Math.max(...times.values())).toBe(1);
}, 400_000);

test('a server that is killed continues where it was, and so do its workers', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases, trials: 5 });
  const workers = await Promise.all(names.map((name) => fleet.worker(name, ['-c', '2'])));
  const watching = fleet.run(file);
  await expect.poll(() => reported(fleet), soon).toBeGreaterThanOrEqual(2);
  await fleet.server.kill();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await fleet.server.start();
  const { exitCode, stdout, stderr } = await watching;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^all +10 +0 +0/m);
  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map(({ ended }) => ended));
  const times = deliveries(fleet);
  expect(times.size).toBe(10);
  expect(Math.max(...times.values())).toBe(1);
}, 400_000);
