import { expect, test } from 'vitest';
import { BatchHandle } from '../../src/fleet/batch-handle.ts';
import { held, letGo } from '../daemon/let-go.ts';
import { countFinished } from '../daemon/sharing.ts';
import { cuttingProxy } from '../engine/cutting-proxy.ts';
import { openFleetPlace } from './fleet-place.ts';

const soon = { timeout: 90_000, interval: 200 };

test('a worker whose engine does not answer leaves its trials to others, until it answers again', async () => {
  await using fleet = await openFleetPlace();
  await using proxy = await cuttingProxy();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }], trials: 4, run: held });
  const worker = await fleet.worker('shaky', ['-c', '1'], { env: { DOCKER_HOST: proxy.host } });
  const batch = await fleet.started(file);
  const run = (await fleet.runs('a'))[0]?.id ?? '';
  const handle = new BatchHandle(batch, fleet.client);
  const heldNow = async () => (await handle.standing()).open.filter(({ phase }) => phase !== undefined);
  const inPhase = async (name: string) => (await heldNow()).filter(({ phase }) => phase === name).length;
  const reported = async () =>
    (await fleet.runs('a'))[0]?.trials?.filter(({ status }) => status === 'reported').length;
  await expect.poll(() => inPhase('harness'), soon).toBe(1);
  await expect.poll(async () => (await heldNow()).length, soon).toBeGreaterThan(1);

  proxy.isDown = true;
  await worker.printed(/trials wait/);
  const reasons = async () => (await handle.standing()).open.map(({ lastFailure }) => lastFailure ?? '');
  // A machine that is too busy for its heartbeats loses trials before it can give them back.
  const returned = /engine of this worker|Heartbeat timeout/;
  await expect.poll(async () => (await reasons()).join('\n'), soon).toMatch(returned);
  // Only the one whose sandbox nobody could end stays.
  const attempts = async () => (await handle.standing()).open.map(({ attempt }) => attempt).toSorted();
  const before = await attempts();

  await fleet.worker('well', ['-c', '1']);
  const letAllGo = async () => {
    await letGo(run);
    return reported();
  };
  await expect.poll(letAllGo, soon).toBe(3);
  expect(before.length).toBe(4);
  // It did not take trials again and again.
  expect(Math.max(...before)).toBeLessThanOrEqual(3);
  expect(countFinished(['shaky', 'well'].map(fleet.folderOf)).finished).toEqual([0, 3]);

  proxy.isDown = false;
  await expect.poll(letAllGo, soon).toBe(4);
  expect((await fleet.client.workflow.getHandle(batch).result()) as object).toMatchObject({ passed: 4 });
  const next = await fleet.started(fleet.suite({ cases: [{ id: 'b', verify: 'cat done.txt' }], trials: 6 }));
  expect((await fleet.client.workflow.getHandle(next).result()) as object).toMatchObject({ passed: 6 });
  const { finished, twice } = countFinished(['shaky', 'well'].map(fleet.folderOf));
  expect(twice).toBe(0);
  expect(finished[0]).toBeGreaterThan(1);
}, 400_000);
