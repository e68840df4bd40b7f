import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Semaphore } from '../../src/base/semaphore.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { profileOf } from '../../src/suite/plan.ts';
import type { BuildEvent } from '../../src/trial/prepare/obtain-image.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { removeRepository, testEngine } from '../engine/engine-fixture.ts';
import { specOf } from './trial-bench.ts';

const repository = `offsite-test/${randomUUID()}`;
let engine: Engine;
let other: Engine;
beforeAll(async () => {
  [engine, other] = await Promise.all([
    testEngine({ snapshots: { repository } }),
    testEngine({ snapshots: { repository } }),
  ]);
});
afterAll(async () => {
  await removeRepository(engine);
  await engine?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

const never = new AbortController().signal;
const unique = () => `: ${randomUUID()}`;

/** The sandboxes of a batch, and what they report of their builds: `prepare of case running`. */
function batch(on: Engine = engine) {
  const events: BuildEvent[] = [];
  const sandboxes = new Sandboxes(on, undefined, { observeBuild: (event) => events.push(event) });
  const states = () => events.map(({ what, state }) => `${what} ${state.kind}`);
  return { events, sandboxes, states };
}

test('each step tells when it begins and when it is built, and tells nothing once its snapshot exists', async () => {
  const { sandboxes, states } = batch();
  const profile = profileOf({ name: 'p', install: unique() });
  const spec = specOf('', { profile, prepare: unique() });
  await sandboxes.prepare(spec, never);
  const steps = ['install of profile p', 'prepare of case'];
  const expected = steps.flatMap((step) => [`${step} running`, `${step} built`]);
  expect(states()).toEqual(expected);
  await sandboxes.prepare({ ...spec, ordinal: 1 }, never);
  expect(states()).toEqual(expected);
  const later = batch();
  await later.sandboxes.prepare(spec, never);
  expect(later.states()).toEqual([]);
});

test('a step that waits for its turn says so', async () => {
  const { sandboxes, states } = batch();
  const permits = new Semaphore(1);
  const held = await permits.acquire(never);
  const building = () => permits.acquire(never);
  const ready = sandboxes.prepare(specOf('', { prepare: unique() }), never, { building });
  await expect.poll(states).toEqual(['prepare of case queued']);
  held[Symbol.dispose]();
  await ready;
  expect(states()).toEqual(['queued', 'running', 'built'].map((state) => `prepare of case ${state}`));
});

test('a script that fails is told once for all trials that share it, with its output', async () => {
  const { sandboxes, events, states } = batch();
  const spec = specOf('', { prepare: `${unique()}; echo why; exit 3` });
  const trials = [0, 1, 2].map((ordinal) => sandboxes.take({ ...spec, ordinal }, never));
  for (const trial of trials) await expect(trial).rejects.toThrow('prepare exited with 3');
  expect(states()).toEqual(['prepare of case running', 'prepare of case failed']);
  expect(events.at(-1)?.state).toMatchObject({
    cause: { message: 'prepare exited with 3', output: 'why\n' },
  });
  expect(new Set(events.map(({ id }) => id)).size).toBe(1);
});

test('a step that another agent builds is told as waited for, and not as built here', async () => {
  const [mine, others] = [batch(), batch(other)];
  const spec = specOf('', { prepare: `${unique()}; sleep 3` });
  const first = mine.sandboxes.prepare(spec, never);
  await expect.poll(mine.states).toEqual(['prepare of case running']);
  const second = others.sandboxes.prepare(spec, never);
  await expect.poll(others.states).toContain('prepare of case other-agent');
  await Promise.all([first, second]);
  expect(new Set(others.states())).toEqual(new Set(['prepare of case other-agent', 'prepare of case built']));
});

test('an interrupted step has stopped, and has not failed', async () => {
  const { sandboxes, states } = batch();
  const interruption = new AbortController();
  const preparing = sandboxes.prepare(specOf('', { prepare: 'sleep 600' }), interruption.signal);
  await expect.poll(states).toEqual(['prepare of case running']);
  interruption.abort(new Error('enough'));
  await expect(preparing).rejects.toThrow();
  expect(states()).toEqual(['prepare of case running', 'prepare of case stopped']);
});
