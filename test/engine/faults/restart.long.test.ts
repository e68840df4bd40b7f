import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ContainerSpec } from '../../../src/engine/container/container-spec.ts';
import { containerOf } from '../../../src/engine/container.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import { byRoot } from '../../needs.ts';
import { anotherAgent } from '../another-agent.ts';
import { dockerOf } from '../docker-of.ts';
import { markerRuns, testEngine, untilFile } from '../engine-fixture.ts';
import { type OwnEngine, ownEngine } from './own-engine.ts';
import { slowRegistry } from './slow-registry.ts';
import { tinyImage } from './tiny-image.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 600_000;

// A separate engine needs a kernel with network bridges too.
byRoot.describe('an engine that stops in the middle', () => {
  let own: OwnEngine;
  let engine: Engine;
  let imageId: string;
  beforeAll(async () => {
    own = await ownEngine();
    await own.start();
    engine = await testEngine({ host: own.host });
    imageId = await tinyImage(engine);
  }, timeout);
  // It runs already, unless a test before failed.
  beforeEach(async () => void (await own.start()), timeout);
  afterAll(async () => {
    try {
      await own?.start();
      await engine?.[Symbol.asyncDispose]();
    } finally {
      await own?.[Symbol.asyncDispose]();
    }
  }, timeout);

  const spec = (): ContainerSpec => ({
    imageId,
    network: 'none',
    security: 'compatible',
    workingDir: '/workspace',
    memoryBytes: 64 * 2 ** 20,
    cpus: 1,
    pids: 32,
  });

  async function startedContainer(by: Engine = engine) {
    const container = await by.createContainer(spec());
    await container.start();
    // An engine that goes away while the marker is being started makes the next container fail too, which is
    // not what is tested here.
    await markerRuns(by);
    return container;
  }

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    test(`of commands and scripts (${signal}) is an infrastructure error; containers can be removed later`, {
      timeout,
    }, async () => {
      const [one, other, third] = await Promise.all([1, 2, 3].map(() => startedContainer()));
      if (!one || !other || !third) throw new Error('there are three');
      // As one whose processes can end it: then the engine's events say who did.
      const { port } = engine;
      const parts = { runtime: { listsProcesses: false, protectsPaths: true } };
      const endable = containerOf(port, third.id, spec(), parts);
      const begun = Promise.withResolvers<void>();
      const works = [
        one.exec({
          argv: ['sh', '-c', 'echo begun; sleep 600'],
          timeoutMs: timeout,
          onOutput: () => begun.resolve(),
        }),
        other.runScript({
          script: ': > begun\nsleep 600',
          timeoutMs: timeout,
        }),
        endable.exec({ argv: ['sh', '-c', ': > /begun; sleep 600'], timeoutMs: timeout }),
      ];
      const outcomes = Promise.all(works.map((work) => work.catch((error: unknown) => error)));
      await Promise.all([begun.promise, untilFile(engine, '/workspace/begun'), untilFile(engine, '/begun')]);
      await own.end(signal);
      for (const outcome of await outcomes)
        expect(outcome).toMatchObject({ name: 'OffsiteError', kind: 'infrastructure' });
      const said = await own.start();
      const clearedLeftovers = said.some((line) => line.includes('left by an engine that was killed'));
      expect(clearedLeftovers).toBe(signal === 'SIGKILL');
      await Promise.all([one.remove(), other.remove(), endable.remove()]);
      await expect(one.start()).rejects.toMatchObject({ code: 'ENGINE_NOT_FOUND' });
    });
  }

  test('of reading files makes it an infrastructure error, never a short file', { timeout }, async () => {
    const other = await startedContainer();
    // More than the connection's buffers hold.
    await other.put([{ path: 'workspace/big', content: Buffer.alloc(50_000_000) }]);
    const read = async () => {
      for await (const entry of other.archive('/workspace'))
        for await (const _ of entry.content()) await own.crash();
    };
    await expect(read()).rejects.toMatchObject({ kind: 'infrastructure' });
    await own.start();
    await other.remove();
  });

  test('of a removal makes that an error; a retry after a restart works, even if it is gone', {
    timeout,
  }, async () => {
    const container = await startedContainer();
    await own.freeze();
    const removal = container.remove().catch((error: unknown) => error);
    await own.crash();
    expect(await removal).toMatchObject({ code: 'ENGINE_CONNECTION', kind: 'infrastructure' });
    await own.start();
    await container.remove();
    const other = await startedContainer();
    await dockerOf(engine).getContainer(other.id).remove({ force: true });
    await other.remove();
    expect(await dockerOf(engine).listContainers({ all: true })).not.toContainEqual(
      expect.objectContaining({ Id: container.id }),
    );
  });

  test('of a pull makes it an error that says so, and the pull works after a restart', {
    timeout,
  }, async () => {
    await using registry = await slowRegistry();
    const name = registry.image;
    const silenceMs = timeout;
    const pull = engine.port.images.pull(name, { firstWordMs: timeout, silenceMs });
    const outcome = pull.catch((error: unknown) => error);
    await Promise.race([registry.halfway, pull]);
    await own.crash();
    expect(await outcome).toMatchObject({ kind: 'infrastructure', message: expect.stringContaining(name) });
    expect(await own.start()).not.toEqual([]);
    expect(await engine.findImage(name)).toBeUndefined();
    registry.release();
    await engine.port.images.pull(name, { firstWordMs: timeout, silenceMs });
    expect((await engine.findImage(name))?.names).toEqual([name]);
  });

  test('together with an agent leaves nothing that the next agent does not sweep', { timeout }, async () => {
    await engine.port.images.tag(imageId, 'offsite/base:latest');
    const dead = await anotherAgent({ host: own.host });
    await Promise.all([dead.kill(), own.crash()]);
    await own.start();
    await using next = await testEngine({ host: own.host });
    const swept = await next.sweep();
    expect(swept.removed).toContainEqual(expect.objectContaining({ id: dead.containerId }));
    expect(swept.instances).toContain(dead.instance);
  });
});
