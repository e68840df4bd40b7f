import { expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { held, letGo } from '../daemon/let-go.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { freePort } from '../free-port.ts';
import { type FleetPlace, openFleetPlace } from './fleet-place.ts';

const soon = { timeout: 90_000, interval: 200 };

async function runningSandboxes(run: string): Promise<number> {
  await using engine = await connectEngine({ instance: `test-fleet-control-${process.pid}` });
  const filters = { label: [`offsite.run=${run}`], status: ['running'] };
  return (await dockerOf(engine).listContainers({ filters })).length;
}

async function statusOf(fleet: FleetPlace, batch: string): Promise<string> {
  return (await fleet.client.workflow.getHandle(batch).describe()).status.name;
}

test('a batch that is canceled ends when its sandboxes are gone, and its worker goes on', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }], trials: 3, run: held });
  await fleet.worker('one', ['-c', '1']);
  const batch = await fleet.started(file);
  const run = (await fleet.runs('a'))[0]?.id ?? '';
  const listed = async () => (await fleet.command(['status']).ended).stdout;
  await expect.poll(() => runningSandboxes(run), soon).toBeGreaterThan(0);
  expect(await listed()).toMatch(
    new RegExp(
      `1 worker:\\n.*\\n.*\\n    pools default; labels amd64\\n.*\\n1 batch:\\n  ${batch}  small  0 of 3`,
    ),
  );
  expect((await fleet.command(['cancel', batch]).ended).exitCode).toBe(0);
  await expect.poll(() => statusOf(fleet, batch), soon).toBe('CANCELLED');
  expect(await runningSandboxes(run)).toBe(0);
  const second = fleet.suite({ cases: [{ id: 'b', verify: 'cat done.txt' }] });
  const { exitCode, stderr } = await fleet.run(second);
  expect(exitCode, stderr).toBe(0);
});

test('a paused batch schedules no more trials until it goes on, and a drained worker reports what it runs', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }], trials: 2, run: held });
  const address = `127.0.0.1:${await freePort()}`;
  const worker = await fleet.worker('one', ['-c', '1', '--listen', address]);
  const asked = async (path: string) => {
    const answer = await fetch(`http://${address}${path}`);
    return [answer.status, await answer.json()];
  };
  expect(await asked('/healthz')).toEqual([200, { ok: true, troubles: [] }]);
  expect(await asked('/readyz')).toEqual([200, { ready: true, mode: 'working', running: 0 }]);
  const batch = await fleet.started(file, '--window', '1');
  const [first] = await fleet.runs('a');
  const run = first?.id ?? '';
  await expect.poll(() => runningSandboxes(run), soon).toBeGreaterThan(0);
  expect((await fleet.command(['pause', batch]).ended).exitCode).toBe(0);
  await letGo(run);
  const statuses = async () => (await fleet.runs('a'))[0]?.trials?.map(({ status }) => status);
  await expect.poll(statuses, soon).toEqual(['reported', 'queued']);
  await expect
    .poll(async () => (await fleet.command(['status']).ended).stdout, soon)
    .toMatch(/paused, 0 held/);
  expect((await fleet.command(['unpause', batch]).ended).exitCode).toBe(0);
  await expect.poll(() => runningSandboxes(run), soon).toBeGreaterThan(0);
  const drained = await fleet.command(['drain'], {}, fleet.folderOf('one')).ended;
  expect(drained.stdout).toMatch(/draining/);
  expect(await asked('/readyz')).toEqual([503, { ready: false, mode: 'draining', running: 1 }]);
  expect((await asked('/healthz'))[0]).toBe(200);
  await letGo(run);
  expect((await worker.ended).exitCode).toBe(0);
  expect(await statuses()).toEqual(['reported', 'reported']);
});
