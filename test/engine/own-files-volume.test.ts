import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ownFilesVolume } from '../../src/engine/own-files/volume.ts';
import type { EnginePort } from '../../src/engine/port/engine-port.ts';
import { testEngine } from './engine-fixture.ts';

/** Finds the files as a new Offsite process does, and counts what it asks the engine for. */
async function found(changes: Partial<EnginePort> = {}) {
  // What another test has just written is old enough to be recorded.
  const clock = { ...systemClock, now: () => Date.now() + 120_000 };
  await using engine = await testEngine({ clock });
  const { port, instance, capabilities } = engine;
  const imageId = (await engine.findImage('offsite/base'))?.id ?? '';
  let containers = 0;
  const create: typeof port.containers.create = (request, signal) => {
    containers += 1;
    return port.containers.create(request, signal);
  };
  const watched = { ...port, containers: { ...port.containers, create }, ...changes };
  const before = port.roundTrips;
  const files = await ownFilesVolume(watched, instance, capabilities)(imageId);
  return { files, containers, roundTrips: port.roundTrips - before };
}

test('once recorded, Offsite finds its own files without a container', async () => {
  const first = await found();
  expect(first.files?.shield).toMatch(/^\/offsite-shield\/[\da-f]{64}-[\da-f]{16}\.so$/);
  expect(await found()).toEqual({ files: first.files, containers: 0, roundTrips: 1 });
});

test('a record of a volume that was removed counts for nothing', async () => {
  const { files } = await found();
  await using engine = await testEngine();
  const { port } = engine;
  const removed: string[] = [];
  const again = await found({
    list: async (...asked) => (await port.list(...asked)).filter(({ name }) => name !== 'offsite-own-files'),
    async remove(kind, id, signal) {
      removed.push(`${kind} ${id}`);
      await port.remove(kind, id, signal);
    },
  });
  expect(again).toMatchObject({ files, containers: 1 });
  expect(removed).toContainEqual(expect.stringMatching(/^volume offsite-own-files-[\da-f]{16}$/));
});
