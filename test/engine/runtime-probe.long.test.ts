import { expect, test } from 'vitest';
import { runtimeProbe } from '../../src/engine/container/runtime-probe.ts';
import type { ContainerPort } from '../../src/engine/port/containers.ts';
import { plainRuntimes } from '../../src/engine/port/engine-port.ts';
import { engineFailure } from '../../src/engine/port/failure.ts';
import { startedContainer, testSpec } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

/**
 * The probe of an engine whose default runtime Offsite does not know, with these answers in place of its own.
 */
async function probed(answers: Partial<ContainerPort> = {}) {
  const { port, instance } = engine;
  const capabilities = { ...engine.capabilities, defaultRuntime: 'unknown' };
  const containers = { ...port.containers, ...answers };
  const probe = runtimeProbe({ port: { ...port, containers }, instance, capabilities });
  return { probe, spec: await testSpec(engine) };
}

const containersOf = async () => {
  const all = await engine.port.list('container', [`offsite.instance=${engine.instance}`]);
  return all.filter(({ labels }) => labels['offsite.role'] === 'container');
};

test('an unknown runtime is asked once, and nothing is left of that', async () => {
  const { probe, spec } = await probed();
  const isPlain = plainRuntimes.includes(engine.capabilities.defaultRuntime);
  const [first, second] = await Promise.all([probe(spec), probe(spec)]);
  expect(first).toEqual({ listsProcesses: isPlain, protectsPaths: isPlain });
  expect(second).toBe(first);
  expect(await containersOf()).toEqual([]);
});

test("an engine that lists its machine's processes is found out", async () => {
  const machine = { uid: 0, state: 'S', command: 'init' };
  const { probe, spec } = await probed({
    processes: async () => [
      { pid: 1, ...machine },
      { pid: 2, ...machine },
    ],
  });
  expect(await probe(spec)).toMatchObject({ listsProcesses: false });
});

test('a runtime that keeps files to itself is refused, and asked again for the next container', async () => {
  let asked = 0;
  const { probe, spec } = await probed({
    async isFolder() {
      asked += 1;
      throw engineFailure('not-found', 'no such file', undefined);
    },
  });
  for (const _ of [1, 2]) {
    await expect(probe(spec)).rejects.toMatchObject({ code: 'ENGINE_CANNOT_ENFORCE', kind: 'input' });
  }
  expect(asked).toBe(2);
  expect(await containersOf()).toEqual([]);
});

test('every runtime of the engine either runs containers that Offsite can end, or is refused', async () => {
  for (const runtime of engine.capabilities.runtimes.filter((name) => !name.startsWith('io.containerd.'))) {
    try {
      await using container = await startedContainer(engine, { runtime, filter: 'if-available' });
      expect(container.listsProcesses).toBe(plainRuntimes.includes(runtime));
      await container.killAll();
      expect(await container.processes()).toEqual([]);
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENGINE_CANNOT_ENFORCE' });
    }
  }
});
