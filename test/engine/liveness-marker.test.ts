import { expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { markerRuns, testEngine, testSpec } from './engine-fixture.ts';

/** Answers the next starts of containers as a busy engine does now and then. */
function refuseStarts({ docker }: Engine, times: number): () => number {
  let refused = 0;
  const dial = docker.modem.dial.bind(docker.modem);
  docker.modem.dial = (options, callback) => {
    if (refused === times || !options.path.includes('/start?')) return dial(options, callback);
    refused += 1;
    const message = 'OCI runtime start failed: cannot start an already running container: unknown';
    callback?.(Object.assign(new Error(message), { statusCode: 500, json: { message } }), null);
  };
  return () => refused;
}

test('a marker whose start the engine refuses is made anew', async () => {
  await using engine = await testEngine();
  const refused = refuseStarts(engine, 2);
  await engine.createContainer(await testSpec(engine));
  await markerRuns(engine);
  expect(refused()).toBe(2);
});

test('a marker that cannot be started makes the next container fail, and is tried again for the one after that', async () => {
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
