import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { SnapshotRequest } from '../../src/engine/snapshot/build.ts';
import { dockerOf } from './docker-of.ts';
import { daemon, removeRepository, shell, startedContainer, testEngine, testSpec } from './engine-fixture.ts';
import { lookTrips } from './look-trips.ts';

let engine: Engine;
const snapshots = { repository: `offsite-test/${randomUUID()}` };
beforeAll(async () => {
  engine = await testEngine({ snapshots });
});
afterAll(async () => {
  await removeRepository(engine);
  await engine?.[Symbol.asyncDispose]();
});

async function request(
  build: (container: Container) => Promise<void>,
  key = randomUUID(),
): Promise<SnapshotRequest> {
  const { imageId, ...container } = await testSpec(engine, { env: { SECRET: 'sk-not-in-images' } });
  return { parentImageId: imageId, container, key, build };
}

function snapshot(asked: SnapshotRequest, by: Engine = engine, signal?: AbortSignal) {
  return by.snapshot(asked, signal);
}

test('concurrent askers of one state pay for one build, later ones and other agents for none', async () => {
  let builds = 0;
  const asked = await request(async (container) => {
    builds += 1;
    await shell(container, 'echo built > state');
  });
  const results = await Promise.all(Array.from({ length: 5 }, () => snapshot(asked)));
  expect(builds).toBe(1);
  expect(results.map((result) => result.kind === 'snapshot' && result.built)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
  const [first] = results;
  if (first?.kind !== 'snapshot') throw new Error('no snapshot');

  await using other = await testEngine({ snapshots });
  const before = other.roundTrips;
  expect(await snapshot(asked, other)).toEqual({ ...first, built: false });
  expect(other.roundTrips - before).toBe(lookTrips(other));
  expect(builds).toBe(1);

  await using container = await startedContainer(engine, { imageId: first.imageId });
  expect((await shell(container, 'cat state')).stdout.text).toBe('built\n');
  const image = await dockerOf(engine).getImage(first.imageId).inspect();
  expect(JSON.stringify(image)).not.toContain('sk-not-in-images');
  expect(image.Config.Labels).toMatchObject({ offsite: '1', 'offsite.instance': '' });
});

test('another key or parent is another state', async () => {
  const one = await request(async () => undefined);
  const two = await request(async () => undefined);
  const [first, second] = [await snapshot(one), await snapshot(two)];
  if (first.kind !== 'snapshot' || second.kind !== 'snapshot') throw new Error('no snapshot');
  expect(first.imageId).not.toBe(second.imageId);
  const child = await snapshot({ ...one, parentImageId: second.imageId });
  expect(child).toMatchObject({ built: true });
});

test('processes left running are named, and the state is not kept', async () => {
  let builds = 0;
  const asked = await request(async (container) => {
    builds += 1;
    await shell(container, daemon('sleep 1234'));
  });
  expect(await snapshot(asked)).toEqual({
    kind: 'not-snapshotable',
    processes: [expect.stringContaining('sleep 1234')],
  });
  expect(await snapshot(asked)).toMatchObject({ kind: 'not-snapshotable' });
  expect(builds).toBe(1);
});

test('a process that ends by itself after the build is not left running', async () => {
  const asked = await request(async (container) => {
    await shell(container, daemon('sleep 0.2'));
  });
  expect(await snapshot(asked)).toMatchObject({ kind: 'snapshot', built: true });
});

test('what a build throws is thrown to all who asked, its container is gone, and the next one builds anew', async () => {
  let builds = 0;
  const asked = await request(async () => {
    builds += 1;
    if (builds === 1) throw new Error('prepare failed');
  });
  const results = await Promise.allSettled([snapshot(asked), snapshot(asked)]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await snapshot(asked)).toMatchObject({ kind: 'snapshot', built: true });
  const left = await dockerOf(engine).listContainers({
    all: true,
    filters: { label: [`offsite.instance=${engine.instance}`, 'offsite.role=container'] },
  });
  expect(left).toEqual([]);
});

test('an asker that gives up does not take the others with it', async () => {
  const abort = new AbortController();
  let builds = 0;
  const asked = await request(async () => {
    builds += 1;
    if (builds > 1) return;
    abort.abort(new Error('gave up'));
    abort.signal.throwIfAborted();
  });
  const first = snapshot(asked, engine, abort.signal);
  const second = snapshot(asked);
  await expect(first).rejects.toThrow('gave up');
  expect(await second).toMatchObject({ kind: 'snapshot', built: true });
});

test('an image that the builder makes is made once, whoever asks, and kept as a snapshot', async () => {
  await using other = await testEngine({ snapshots });
  const { imageId } = await testSpec(engine);
  const key = randomUUID();
  let builds = 0;
  const ask = (by: Engine) =>
    by.image({
      key,
      description: 'made',
      lockImageId: imageId,
      parentImageId: imageId,
      async make({ name, labels }) {
        builds += 1;
        await by.port.images.build({
          dockerfile: `FROM offsite/base\nENV A=${key}\nENV B=b\n`,
          name,
          labels,
        });
      },
    });
  const results = await Promise.all([ask(engine), ask(other), ask(engine)]);
  expect(builds).toBe(1);
  expect(results.filter(({ built }) => built)).toHaveLength(1);
  const [first] = results;
  expect(new Set(results.map((result) => result.imageId))).toEqual(new Set([first?.imageId]));
  const kept = (await engine.keptSnapshots()).find(({ id }) => id === first?.imageId);
  expect(kept).toMatchObject({ description: 'made', parentId: imageId, inUse: false });
  if (!kept) throw new Error('no snapshot');
  expect(kept.stepIds.length).toBeGreaterThan(1);
  await engine.removeSnapshots([kept]);
  for (const id of [kept.id, ...kept.stepIds]) expect(await engine.findImage(id)).toBeUndefined();
  const failing = { key: randomUUID(), lockImageId: imageId, parentImageId: undefined };
  const broken = () => Promise.reject(new Error('broken'));
  await expect(engine.image({ ...failing, make: broken })).rejects.toThrow('broken');
  await expect(engine.image({ ...failing, make: async () => undefined })).rejects.toThrow(
    'not on this engine',
  );
});
