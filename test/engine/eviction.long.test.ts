import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { evictable } from '../../src/engine/snapshot/eviction.ts';
import type { KeptSnapshot } from '../../src/engine/snapshot/kept-snapshots.ts';
import { markerRuns, removeRepository, shell, testEngine, testSpec, until } from './engine-fixture.ts';
import { lookTrips } from './look-trips.ts';

const mebibyte = 2 ** 20;

describe('what is evicted', () => {
  const kept = (id: string, more: Partial<KeptSnapshot> = {}): KeptSnapshot => ({
    id,
    name: `offsite/snapshot:${id}`,
    description: '',
    bytes: 10,
    createdAt: 0,
    usedAt: 0,
    parentId: 'base',
    stepIds: [],
    inUse: false,
    ...more,
  });
  const evicted = (...args: Parameters<typeof evictable>) => evictable(...args).map(({ id }) => id);

  test('are the least recently used ones, and no more than the budget requires', () => {
    const snapshots = [kept('new', { usedAt: 3 }), kept('old', { usedAt: 1 }), kept('middle', { usedAt: 2 })];
    expect(evicted(snapshots, { budgetBytes: 30 }, 10)).toEqual([]);
    expect(evicted(snapshots, { budgetBytes: 29 }, 10)).toEqual(['old']);
    expect(evicted(snapshots, { budgetBytes: 10 }, 10)).toEqual(['old', 'middle']);
    expect(evicted(snapshots, { budgetBytes: 30, most: 2 }, 10)).toEqual(['old']);
  });

  test('is never a snapshot that a container uses, nor its parent', () => {
    const snapshots = [
      kept('root', { usedAt: 1 }),
      kept('child', { usedAt: 2, parentId: 'root', inUse: true }),
      kept('other', { usedAt: 3 }),
    ];
    expect(evicted(snapshots, {}, 10)).toEqual(['other']);
  });

  test('is a child before its parent', () => {
    const snapshots = [kept('root', { usedAt: 1 }), kept('child', { usedAt: 2, parentId: 'root' })];
    expect(evicted(snapshots, {}, 10)).toEqual(['child', 'root']);
    expect(evicted(snapshots, { budgetBytes: 10 }, 10)).toEqual(['child']);
  });

  test('is never a snapshot that was used within the given time', () => {
    const snapshots = [kept('old', { usedAt: 100 }), kept('new', { usedAt: 900 })];
    expect(evicted(snapshots, { unusedForMs: 500 }, 1_000)).toEqual(['old']);
    expect(evicted(snapshots, { unusedForMs: 500, budgetBytes: 20 }, 1_000)).toEqual([]);
  });
});

describe('an engine with a budget', () => {
  /** Time that a test moves on by itself. */
  let offset = 0;
  const clock: Clock = { ...systemClock, now: () => Date.now() + offset };
  const repository = `offsite-test/${randomUUID()}`;
  const notes: string[] = [];
  let engine: Engine;
  beforeAll(async () => {
    const snapshots = { repository, budgetBytes: 25 * mebibyte };
    engine = await testEngine({ clock, snapshots, note: (message) => notes.push(message) });
  });
  afterAll(async () => {
    await removeRepository(engine);
    await engine?.[Symbol.asyncDispose]();
  });

  /** Makes or uses a snapshot of 10 MiB. */
  async function used(key: string, by: Engine = engine): Promise<string> {
    const { imageId, ...container } = await testSpec(by);
    const result = await by.snapshot({
      parentImageId: imageId,
      container,
      key,
      description: `snapshot ${key}`,
      build: async (container) => {
        await shell(container, `head -c ${10 * mebibyte} /dev/zero > big`);
      },
    });
    if (result.kind !== 'snapshot') throw new Error('no snapshot');
    return result.imageId;
  }
  const kept = async () => (await engine.keptSnapshots()).map(({ description }) => description).sort();

  test('reports the description, the size, and the times of creation and last use of each snapshot', async () => {
    const before = clock.now();
    const id = await used('a');
    const [snapshot] = await engine.keptSnapshots();
    expect(snapshot).toMatchObject({ id, description: 'snapshot a', inUse: false });
    expect(snapshot?.bytes).toBeGreaterThanOrEqual(10 * mebibyte);
    expect(snapshot?.bytes).toBeLessThan(11 * mebibyte);
    expect(snapshot?.createdAt).toBeGreaterThanOrEqual(before);
    expect(snapshot?.createdAt).toBeLessThanOrEqual(clock.now());
  });

  test('evicts least recently used snapshots in the background after a build, unless in use', async () => {
    await used('a');
    offset += 3_600_000;
    const inUse = await used('b');
    offset += 3_600_000;
    await using _container = await engine.createContainer(await testSpec(engine, { imageId: inUse }));
    await used('a');
    offset += 3_600_000;
    await used('c');
    await until(() => notes.length > 0);
    // b was used before a, but is in use.
    expect(await kept()).toEqual(['snapshot b', 'snapshot c']);
    expect(notes).toEqual([
      expect.stringMatching(
        /^removed 1 old snapshot of [\d.]+ \w+: the engine had more than .* \(advanced\.snapshots\.budget in/,
      ),
    ]);
  });

  test('asks about no single snapshot while all are within the budget', async () => {
    const trips = async (snapshots: { budgetBytes: number }) => {
      const one = await testEngine({ clock, snapshots: { repository, ...snapshots } });
      const before = one.roundTrips;
      await used(randomUUID(), one);
      await markerRuns(one);
      await used(randomUUID(), one);
      // Waits for the work in the background.
      await one[Symbol.asyncDispose]();
      return one.roundTrips - before;
    };
    const within = await trips({ budgetBytes: 1_000 * mebibyte });
    const count = (await engine.keptSnapshots()).length;
    expect(count).toBeGreaterThan(1);
    // Above it, each is asked about, and some are removed.
    expect(await trips({ budgetBytes: 1 })).toBeGreaterThan(within + count);
  });

  test('has the engine record a use at most once an hour, so that other agents see it', async () => {
    const namedAt = async (id: string) => (await engine.findImage(id))?.namedAt ?? 0;
    // Without a budget, so that nothing but the uses themselves costs round trips.
    await using unlimited = await testEngine({ clock, snapshots: { repository } });
    const id = await used('d', unlimited);
    const made = await namedAt(id);
    await markerRuns(unlimited);
    const before = unlimited.roundTrips;
    await used('d', unlimited);
    // The base image's own, and the snapshot's.
    expect(unlimited.roundTrips - before).toBe(2 * lookTrips(unlimited));
    offset += 2 * 3_600_000;
    await used('d', unlimited);
    // containerd's image store keeps the time of the first time that an image got a name.
    const { product, imageStore } = unlimited.capabilities;
    if (product === 'Docker' && imageStore === 'engine') await until(async () => (await namedAt(id)) > made);
  });
});
