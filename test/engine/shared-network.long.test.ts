import { expect, test } from 'vitest';
import { startedContainer } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

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
