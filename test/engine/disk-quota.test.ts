import { expect, test } from 'vitest';
import { createWithin } from '../../src/engine/container/create.ts';
import { removeContainer } from '../../src/engine/container/remove.ts';
import { ownershipLabels } from '../../src/engine/owned-objects.ts';
import type { ContainerRequest } from '../../src/engine/port/containers.ts';
import { testSpec } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

test.for([
  // overlay2 on ext4, where the engine says in advance that its storage has none.
  ['no request is refused where the engine says that its storage has no quotas', 'no', 1],
  ['a quota is asked for once where it is not known whether the storage has them', 'unknown', 2],
] as const)('%s', async ([, diskQuota, firstTrips]) => {
  const { port, capabilities, instance } = engine;
  const create = createWithin(port, { ...capabilities, diskQuota });
  const { imageId, memoryBytes, pids } = await testSpec(engine);
  const labels = ownershipLabels({ instance, role: 'container', createdAt: Date.now() });
  const request: ContainerRequest = {
    imageId,
    memoryBytes,
    pids,
    labels,
    command: ['/never-started'],
    stdin: false,
    network: 'none',
    capabilities: [],
    readOnlyRoot: true,
  };
  const trips: number[] = [];
  const quotas: boolean[] = [];
  for (let n = 0; n < 2; n++) {
    const before = port.roundTrips;
    const { id, hasQuota } = await create(request, 100 * 2 ** 20);
    trips.push(port.roundTrips - before);
    quotas.push(hasQuota);
    await removeContainer(port, id);
  }
  expect([trips, quotas]).toEqual(
    quotas[0]
      ? [
          [expect.any(Number), 1],
          [true, true],
        ]
      : [
          [firstTrips, 1],
          [false, false],
        ],
  );
});

test('a request that is wrong in itself fails as before', async () => {
  const create = createWithin(engine.port, engine.capabilities);
  const { memoryBytes, pids } = await testSpec(engine);
  const request: ContainerRequest = {
    imageId: `sha256:${'0'.repeat(64)}`,
    memoryBytes,
    pids,
    labels: {},
    command: ['/x'],
    stdin: false,
    network: 'none',
    capabilities: [],
    readOnlyRoot: true,
  };
  await expect(create(request, 100 * 2 ** 20)).rejects.toMatchObject({ code: 'ENGINE_NOT_FOUND' });
});
