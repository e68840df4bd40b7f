import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import type { SnapshotRequest } from '../../src/engine/snapshot/build.ts';
import { removeRepository, testEngine, testSpec, until } from './engine-fixture.ts';

const repository = `offsite-test/${randomUUID()}`;
let one: Engine;
let other: Engine;
beforeAll(async () => {
  [one, other] = await Promise.all([
    testEngine({ snapshots: { repository } }),
    testEngine({ snapshots: { repository } }),
  ]);
});
afterAll(async () => {
  await removeRepository(one);
  await one?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

async function request(build: () => Promise<void>, key: string = randomUUID()): Promise<SnapshotRequest> {
  const { imageId, ...container } = await testSpec(one);
  return { parentImageId: imageId, container, key, build };
}

/** A look for the image, a refused creation, and a look at who builds: then an agent waits. */
async function isWaiting(engine: Engine, since: number): Promise<void> {
  await until(() => engine.roundTrips - since >= 3);
}

test('two agents that need the same snapshot at the same time build it once', async () => {
  const building = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const key = randomUUID();
  let builds = 0;
  const build = async () => {
    builds += 1;
    building.resolve();
    await finish.promise;
  };
  const first = one.snapshot(await request(build, key));
  await building.promise;
  const before = other.roundTrips;
  const second = other.snapshot(await request(build, key));
  await isWaiting(other, before);
  finish.resolve();
  const [made, found] = await Promise.all([first, second]);
  expect(builds).toBe(1);
  expect(made).toMatchObject({ kind: 'snapshot', built: true });
  expect(found).toEqual({ ...made, built: false });
});

test('where one agent fails to build it, the one that waited builds', async () => {
  const building = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const key = randomUUID();
  const first = one.snapshot(
    await request(async () => {
      building.resolve();
      await finish.promise;
      throw new Error('no luck here');
    }, key),
  );
  await building.promise;
  const before = other.roundTrips;
  const second = other.snapshot(await request(async () => undefined, key));
  await isWaiting(other, before);
  finish.resolve();
  await expect(first).rejects.toThrow('no luck here');
  expect(await second).toMatchObject({ kind: 'snapshot', built: true });
});

test('an agent that waits for another can be told to give up', async () => {
  const building = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const key = randomUUID();
  const first = one.snapshot(
    await request(async () => {
      building.resolve();
      await finish.promise;
    }, key),
  );
  await building.promise;
  const abort = new AbortController();
  const before = other.roundTrips;
  const second = other.snapshot(await request(async () => undefined, key), abort.signal);
  await isWaiting(other, before);
  abort.abort(new Error('gave up'));
  await expect(second).rejects.toThrow('gave up');
  finish.resolve();
  expect(await first).toMatchObject({ built: true });
});

test('an agent that is killed while it builds is noticed by the one that waits, which builds instead', async () => {
  const key = randomUUID();
  const program = new URL('./hostile/dying-agent.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, 'snapshot', key, repository], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(createInterface({ input: child.stdout }), 'line');
  const before = other.roundTrips;
  const waiting = other.snapshot(await request(async () => undefined, key));
  await isWaiting(other, before);
  child.kill('SIGKILL');
  expect(await waiting).toMatchObject({ kind: 'snapshot', built: true });
});
