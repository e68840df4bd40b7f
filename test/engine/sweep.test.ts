import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { stuckText } from '../../src/api/swept-text.ts';
import { systemClock } from '../../src/base/clock.ts';
import { ownProcess } from '../../src/engine/owner-process.ts';
import type { EnginePort, ListedObject } from '../../src/engine/port/engine-port.ts';
import { sweepDead } from '../../src/engine/sweep.ts';
import { byRoot } from '../needs.ts';
import { anotherAgent } from './another-agent.ts';
import { cuttingProxy } from './cutting-proxy.ts';
import { dockerOf } from './docker-of.ts';
import { startedContainer, testEngine, until } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

const ofInstance = (instance: string) =>
  dockerOf(engine).listContainers({ all: true, filters: { label: [`offsite.instance=${instance}`] } });

const runningMarkers = (instance: string) =>
  dockerOf(engine).listContainers({
    filters: { label: [`offsite.instance=${instance}`, 'offsite.role=marker'] },
  });

/** Removed already is fine. */
async function gone(removal: Promise<unknown>): Promise<void> {
  await removal.catch((error: { statusCode?: number }) => {
    if (error.statusCode !== 404) throw error;
  });
}

const labelsOf = (created: number, instance = `test-${randomUUID()}`) => ({
  offsite: '1',
  'offsite.instance': instance,
  'offsite.created': String(created),
});

/** A container that no process of Offsite owns. */
async function orphan(given: Record<string, string>) {
  const image = await engine.findImage('offsite/base');
  return dockerOf(engine).createContainer({ Image: image?.id ?? '', Cmd: ['true'], Labels: given });
}

// Other tests sweep too, at the same time and on the same engine: what is dead may be gone before we look.

test('what an agent that was killed left is removed at once; what living ones own stays', async () => {
  const [dead, living] = await Promise.all([anotherAgent(), anotherAgent()]);
  const isRunning = async (instance: string) =>
    (await ofInstance(instance)).filter(({ State }) => State === 'running').length > 0;
  try {
    await using mine = await startedContainer(engine);
    // Both are alive: nothing of theirs is touched.
    await engine.sweep();
    expect(await isRunning(dead.instance)).toBe(true);

    await dead.kill();
    await engine.sweep();
    expect(await ofInstance(dead.instance)).toEqual([]);
    expect(await isRunning(living.instance)).toBe(true);
    expect((await ofInstance(engine.instance)).map(({ Id }) => Id)).toContain(mine.id);
  } finally {
    living.process.kill('SIGTERM');
    await once(living.process, 'close');
  }
  // It was asked to end, and took its containers with it.
  expect(await ofInstance(living.instance)).toEqual([]);
});

byRoot.test(
  'an agent whose process is not seen from here, as in a container, is known by its marker',
  async () => {
    const agent = await anotherAgent({
      within: ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'],
    });
    await until(async () => (await runningMarkers(agent.instance)).length === 1);
    await engine.sweep();
    expect((await ofInstance(agent.instance)).map(({ State }) => State)).toEqual(['running', 'running']);
    await agent.kill();
    await until(async () => (await runningMarkers(agent.instance)).length === 0);
    await engine.sweep();
    expect(await ofInstance(agent.instance)).toEqual([]);
  },
);

test('a container that the engine never removes is told, and keeps nothing else from being removed', async () => {
  // They are young, and their processes have ended for this sweep alone, so no other one removes them before it.
  await using stack = new AsyncDisposableStack();
  const [held, other] = [`test-${randomUUID()}`, `test-${randomUUID()}`];
  const orphans = [await orphan(labelsOf(Date.now(), held)), await orphan(labelsOf(Date.now(), other))];
  for (const container of orphans) stack.defer(() => gone(container.remove({ force: true })));
  const heldId = orphans[0]?.id ?? '';
  const ended = ({ labels, ...object }: ListedObject) => ({
    ...object,
    labels: [held, other].includes(labels['offsite.instance'] ?? '')
      ? { ...labels, 'offsite.process': ownProcess.replace(/\d+$/, '1') }
      : labels,
  });
  const { port } = engine;
  let removing = 0;
  const silent: EnginePort = {
    ...port,
    clock: {
      now: () => port.clock.now(),
      monotonic: () => port.clock.now(),
      // Deadlines pass once all other removals have ended, however long these take.
      async sleep(ms, signal) {
        await port.clock.sleep(Math.min(ms, 3_000), signal);
        while (removing > 0) await port.clock.sleep(100, signal);
      },
    },
    list: async (...args) => (await port.list(...args)).map(ended),
    async remove(kind, id) {
      if (id === heldId) await new Promise(() => undefined);
      removing += 1;
      await port.remove(kind, id).finally(() => {
        removing -= 1;
      });
    },
  };
  const { stuck } = await sweepDead(silent, engine.instance);
  expect(stuck.map(({ id }) => id)).toEqual([heldId]);
  expect(stuckText(stuck, 'the engine')).toContain(
    `1 container whose Offsite process no longer runs: ${heldId.slice(0, 12)}`,
  );
  expect(await ofInstance(other)).toEqual([]);
});

test('a living agent whose connection was cut gets another marker, and keeps what it owns', async () => {
  await using proxy = await cuttingProxy();
  await using cut = await testEngine({ host: proxy.host });
  await using _theirs = await startedContainer(cut);
  await until(async () => (await runningMarkers(cut.instance)).length === 1);
  const [marker] = await runningMarkers(cut.instance);
  proxy.cut('reset');
  await until(async () => {
    const [next] = await runningMarkers(cut.instance);
    return next !== undefined && next.Id !== marker?.Id;
  });
  await engine.sweep();
  const states = (await ofInstance(cut.instance)).filter(({ Labels }) => Labels['offsite.role'] !== 'marker');
  expect(states.map(({ State }) => State)).toEqual(['running']);
});

describe('what no marker speaks for', () => {
  const old = () => Date.now() - 61_000;
  const isThere = (inspected: Promise<unknown>) =>
    inspected.then(
      () => true,
      (error: { statusCode?: number }) => {
        if (error.statusCode !== 404) throw error;
        return false;
      },
    );

  test('is believed to be of an agent that starts for a minute, and dead after that', async () => {
    await using stack = new AsyncDisposableStack();
    const [young, dead] = [await orphan(labelsOf(Date.now())), await orphan(labelsOf(old()))];
    for (const container of [young, dead]) stack.defer(() => gone(container.remove({ force: true })));
    await engine.sweep();
    expect(await isThere(dead.inspect())).toBe(false);
    expect(await isThere(young.inspect())).toBe(true);
  });

  test('is of a process that lives, however old it is, and not of one that has its id now', async () => {
    await using stack = new AsyncDisposableStack();
    const of = async (process: string, created: number) => {
      const container = await orphan({ ...labelsOf(created), 'offsite.process': process });
      stack.defer(() => gone(container.remove({ force: true })));
      return container;
    };
    const living = await of(ownProcess, old());
    const dead = await of(ownProcess.replace(/\d+$/, '1'), Date.now());
    const elsewhere = await of(`another boot ${ownProcess}`, Date.now());
    await engine.sweep();
    expect(await isThere(dead.inspect())).toBe(false);
    expect(await isThere(living.inspect())).toBe(true);
    expect(await isThere(elsewhere.inspect())).toBe(true);
  });

  test('goes in one sweep, though containers use the volumes', async () => {
    await using stack = new AsyncDisposableStack();
    const image = await engine.findImage('offsite/base');
    const given = labelsOf(old());
    const volumes = Array.from({ length: 2 }, () => `offsite-test-${randomUUID()}`);
    for (const name of volumes) {
      await dockerOf(engine).createVolume({ Name: name, Labels: given });
      stack.defer(() => gone(dockerOf(engine).getVolume(name).remove()));
      const container = await dockerOf(engine).createContainer({
        Image: image?.id ?? '',
        Cmd: ['true'],
        Labels: given,
        HostConfig: { Binds: [`${name}:/data`] },
      });
      stack.defer(() => gone(container.remove({ force: true })));
    }
    const { left } = await engine.sweep();
    // While a sweep of another test removes a container, its volume waits for a later sweep.
    const contested = volumes.filter((name) => left.some(({ id }) => id === name));
    expect(contested.length).toBeLessThan(volumes.length);
    for (const name of volumes) {
      await until(async () => {
        if (contested.includes(name)) await engine.sweep();
        return !(await isThere(dockerOf(engine).getVolume(name).inspect()));
      });
    }
  });

  test('goes, networks and volumes too; what living agents own, and what is nobody’s, stays', async () => {
    await using stack = new AsyncDisposableStack();
    await using _mine = await startedContainer(engine);
    await using living = await testEngine();
    await using _theirs = await startedContainer(living);
    const made = async (instance?: string) => {
      const given = labelsOf(old(), instance);
      const name = `offsite-test-${randomUUID()}`;
      const network = await dockerOf(engine).createNetwork({ Name: name, Internal: true, Labels: given });
      stack.defer(() => gone(network.remove()));
      await dockerOf(engine).createVolume({ Name: name, Labels: given });
      const volume = dockerOf(engine).getVolume(name);
      stack.defer(() => gone(volume.remove()));
      return [network, volume];
    };
    const dead = await made();
    const alive = [...(await made(living.instance)), ...(await made(engine.instance))];
    // A container that somebody runs from one of our snapshots inherits the labels of the image.
    const borrowed = await orphan(labelsOf(old(), ''));
    stack.defer(() => gone(borrowed.remove({ force: true })));
    await engine.sweep();
    for (const object of dead) expect(await isThere(object.inspect())).toBe(false);
    for (const object of [...alive, borrowed]) expect(await isThere(object.inspect())).toBe(true);
  });

  test('is only named, with what it is and whose, by a sweep that is told to look', async () => {
    await using stack = new AsyncDisposableStack();
    // Alive to all others, whose clocks are right.
    const created = Date.now() + 3_600_000;
    const instance = `test-${randomUUID()}`;
    const container = await orphan({ ...labelsOf(created, instance), 'offsite.run': 'run-7' });
    stack.defer(() => gone(container.remove({ force: true })));
    const volume = `offsite-test-${randomUUID()}`;
    await dockerOf(engine).createVolume({ Name: volume, Labels: labelsOf(created, instance) });
    stack.defer(() => gone(dockerOf(engine).getVolume(volume).remove()));
    const clock = { ...systemClock, now: () => created + 61_000 };
    await using late = await testEngine({ clock });
    const { removed, instances } = await late.sweep(undefined, { dryRun: true });
    expect(instances).toContain(instance);
    expect(removed.filter((object) => object.instance === instance)).toMatchObject([
      { kind: 'container', id: container.id, createdAt: created, labels: { 'offsite.run': 'run-7' } },
      { kind: 'volume', id: volume, name: volume, createdAt: created },
    ]);
    expect(await isThere(container.inspect())).toBe(true);
  });

  test('but is used by something else, is left, and said to be', async () => {
    await using stack = new AsyncDisposableStack();
    const name = `offsite-test-${randomUUID()}`;
    await dockerOf(engine).createVolume({ Name: name, Labels: labelsOf(old()) });
    stack.defer(() => gone(dockerOf(engine).getVolume(name).remove()));
    const image = await engine.findImage('offsite/base');
    const user = await dockerOf(engine).createContainer({
      Image: image?.id ?? '',
      HostConfig: { Binds: [`${name}:/somewhere`] },
    });
    stack.defer(() => gone(user.remove({ force: true })));
    const { left, removed } = await engine.sweep();
    expect(left.map(({ id }) => id)).toContain(name);
    expect(removed.map(({ id }) => id)).not.toContain(name);
  });

  test('and is a snapshot that lost its name goes; what somebody built upon a snapshot stays', async () => {
    await using stack = new AsyncDisposableStack();
    const base = await engine.findImage('offsite/base');
    if (base === undefined) throw new Error('no base image');
    const container = await orphan({});
    stack.defer(() => gone(container.remove({ force: true })));
    const nameless = async (parent: string) => {
      const marks = { ...labelsOf(old(), ''), 'offsite.role': 'snapshot', 'offsite.parent': parent };
      // Podman takes labels as changes only.
      const changes = Object.entries(marks).map(([key, value]) => `LABEL ${key}="${value}"`);
      const { Id } = (await container.commit({ changes } as never)) as unknown as { Id: string };
      const image = dockerOf(engine).getImage(`sha256:${Id.replace('sha256:', '')}`);
      stack.defer(() => gone(image.remove()));
      return image;
    };
    const [ours, theirs] = [await nameless(base.id), await nameless('sha256:another')];
    await engine.sweep();
    expect(await isThere(ours.inspect())).toBe(false);
    expect(await isThere(theirs.inspect())).toBe(true);
  });
});

test('every object says whose it is, and what the caller adds cannot change that', async () => {
  await using container = await startedContainer(engine, {
    labels: { mine: 'yes', 'offsite.instance': 'forged' },
  });
  const { Config } = await dockerOf(engine).getContainer(container.id).inspect();
  expect(Config.Labels).toMatchObject({
    mine: 'yes',
    offsite: '1',
    'offsite.instance': engine.instance,
    'offsite.role': 'container',
    'offsite.process': expect.stringMatching(/ \d+ \d+$/),
    'offsite.created': expect.stringMatching(/^\d{13}$/),
  });
});

test('disposing of an engine leaves nothing of it, whatever still runs', async () => {
  const own = await testEngine();
  await startedContainer(own);
  const unstarted = await startedContainer(own);
  await unstarted.remove();
  await unstarted.remove();
  await own[Symbol.asyncDispose]();
  expect(await ofInstance(own.instance)).toEqual([]);
});
