import { expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { engineFailure } from '../../src/engine/port/failure.ts';
import { cuttingProxy } from './cutting-proxy.ts';
import { markerRuns, testEngine, testSpec } from './engine-fixture.ts';

/** Answers the next starts of containers as a busy engine does now and then. */
function refuseStarts({ port: { containers } }: Engine, times: number): () => number {
  let refused = 0;
  const { start } = containers;
  containers.start = async (id, signal) => {
    if (refused === times) return start(id, signal);
    refused += 1;
    const message = 'OCI runtime start failed: cannot start an already running container: unknown';
    throw engineFailure('refused', message, undefined);
  };
  return () => refused;
}

test('a marker is created again if the engine refuses to start it', async () => {
  await using engine = await testEngine();
  const refused = refuseStarts(engine, 2);
  await engine.createContainer(await testSpec(engine));
  await markerRuns(engine);
  expect(refused()).toBe(2);
});

test('a marker that cannot start makes the next container fail, and is retried after that', async () => {
  await using engine = await testEngine();
  const refused = refuseStarts(engine, 3);
  const spec = await testSpec(engine);
  await engine.createContainer(spec);
  await expect.poll(refused).toBe(3);
  const next = () => engine.createContainer(spec).catch((error: unknown) => error);
  await expect.poll(next).toMatchObject({ code: 'ENGINE_REFUSED' });
  await engine.createContainer(spec);
  await markerRuns(engine);
});

test('a marker whose engine was away for longer than three tries comes back by itself', async () => {
  await using proxy = await cuttingProxy();
  await using engine = await testEngine({ host: proxy.host });
  await using near = await testEngine();
  const seen = { ...near, instance: engine.instance };
  await engine.createContainer(await testSpec(engine));
  await markerRuns(seen);
  const before = proxy.refused;
  proxy.isDown = true;
  await expect.poll(() => proxy.refused - before, { timeout: 30_000 }).toBeGreaterThan(4);
  proxy.isDown = false;
  await markerRuns(seen);
});

test('an agent ends though its marker waits for an engine that is away', async () => {
  await using proxy = await cuttingProxy();
  const engine = await testEngine({ host: proxy.host });
  await using near = await testEngine();
  await engine.createContainer(await testSpec(engine));
  await markerRuns({ ...near, instance: engine.instance });
  proxy.isDown = true;
  await expect.poll(() => proxy.refused, { timeout: 30_000 }).toBeGreaterThan(2);
  const ended = engine[Symbol.asyncDispose]();
  proxy.isDown = false;
  await ended;
});
