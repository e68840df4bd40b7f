import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { startedContainer, testEngine } from './engine-fixture.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await testEngine();
});
afterAll(() => engine?.[Symbol.asyncDispose]());

test('a container is removed whose network another one shares, while that one is looked at', async () => {
  for (let round = 0; round < 3; round += 1) {
    await using first = await startedContainer(engine);
    await using second = await startedContainer(engine, { network: { sharedWith: first.id } });
    const { containers, remove } = engine.port;
    const removal = new AbortController();
    const looking = Array.from({ length: 8 }, async () => {
      // It may be gone with the first one.
      while (!removal.signal.aborted) await containers.state(second.id).catch(() => removal.abort());
    });
    await remove('container', first.id);
    removal.abort();
    await Promise.all(looking);
    await expect(containers.state(first.id)).rejects.toThrow();
  }
});
