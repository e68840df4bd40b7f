import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { startedContainer, testEngine } from './engine-fixture.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await testEngine();
});
afterAll(() => engine?.[Symbol.asyncDispose]());

const ofInstance = (instance: string) =>
  engine.docker.listContainers({ all: true, filters: { label: [`offsite.instance=${instance}`] } });

/** Another agent: a process of its own that holds one container. */
async function anotherAgent(): Promise<{ process: ChildProcess; instance: string; containerId: string }> {
  const program = new URL('./agent-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { process: child, ...JSON.parse(line) };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('it did not come to pass in 10 s');
    await systemClock.sleep(50);
  }
}

test('what an agent that was killed left is removed; what living ones own stays', async () => {
  const [dead, living] = await Promise.all([anotherAgent(), anotherAgent()]);
  try {
    await using mine = await startedContainer(engine);
    expect((await ofInstance(dead.instance)).length).toBe(2);
    // Both are alive: nothing of theirs is touched.
    const early = await engine.sweep();
    expect(early.removed).not.toContain(dead.containerId);
    expect(early.removed).not.toContain(living.containerId);

    dead.process.kill('SIGKILL');
    await once(dead.process, 'close');
    await until(async () => (await ofInstance(dead.instance)).some(({ State }) => State === 'exited'));
    const swept = await engine.sweep();
    expect(swept.instances).toContain(dead.instance);
    expect(swept.removed).toContain(dead.containerId);
    expect(swept.removed).not.toContain(living.containerId);
    expect(swept.removed).not.toContain(mine.id);
    expect(await ofInstance(dead.instance)).toEqual([]);
    expect((await ofInstance(living.instance)).map(({ State }) => State)).toEqual(['running', 'running']);
  } finally {
    living.process.kill('SIGTERM');
    await once(living.process, 'close');
  }
  // It was asked to end, and took its containers with it.
  expect(await ofInstance(living.instance)).toEqual([]);
});

test('an instance that has no marker yet is believed to be starting for a minute, and dead after that', async () => {
  const instance = `test-markerless-${process.pid}-${Date.now()}`;
  const image = await engine.findImage('offsite/base');
  const orphan = await engine.docker.createContainer({
    Image: image?.id,
    Cmd: ['true'],
    Labels: { offsite: '1', 'offsite.instance': instance, 'offsite.created': String(Date.now()) },
  });
  try {
    expect((await engine.sweep()).removed).not.toContain(orphan.id);
    const later = { ...systemClock, now: () => Date.now() + 61_000 };
    await using late = await testEngine({ clock: later });
    const swept = await late.sweep();
    expect(swept.removed).toContain(orphan.id);
  } finally {
    await orphan.remove({ force: true }).catch((error: { statusCode?: number }) => {
      if (error.statusCode !== 404) throw error;
    });
  }
});

test('every object says whose it is, and what the caller adds cannot change that', async () => {
  await using container = await startedContainer(engine, {
    labels: { mine: 'yes', 'offsite.instance': 'forged' },
  });
  const { Config } = await engine.docker.getContainer(container.id).inspect();
  expect(Config.Labels).toMatchObject({
    mine: 'yes',
    offsite: '1',
    'offsite.instance': engine.instance,
    'offsite.role': 'container',
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

test('a marker that somebody stops comes back by itself', async () => {
  await using own = await testEngine();
  await startedContainer(own);
  const markers = () =>
    own.docker.listContainers({
      filters: { label: [`offsite.instance=${own.instance}`, 'offsite.role=marker'] },
    });
  await until(async () => (await markers()).length === 1);
  const [first] = await markers();
  await own.docker.getContainer(first?.Id ?? '').kill();
  await until(async () => {
    const [now] = await markers();
    return now !== undefined && now.Id !== first?.Id;
  });
});
