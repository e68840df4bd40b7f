import { expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { engineFailure } from '../../src/engine/port/failure.ts';
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
