import { afterAll, beforeAll, expect, test } from 'vitest';
import { containerOf } from '../../../src/engine/container.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import { byRoot } from '../../needs.ts';
import { dockerOf } from '../docker-of.ts';
import { startedContainer, testEngine, testSpec, until, untilFile } from '../engine-fixture.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await testEngine();
});
afterAll(() => engine?.[Symbol.asyncDispose]());

const lost = { name: 'OffsiteError', kind: 'infrastructure' };

test('a command whose container is killed from outside is an infrastructure error', async () => {
  await using container = await startedContainer(engine);
  let killed: Promise<unknown> | undefined;
  const command = container.exec({
    argv: ['sh', '-c', 'echo begun; sleep 600'],
    timeoutMs: 60_000,
    onOutput: () => {
      killed ??= dockerOf(engine).getContainer(container.id).kill();
    },
  });
  await expect(command).rejects.toMatchObject(lost);
  await killed;
});

test('and its script too, which is no failed script', async () => {
  await using container = await startedContainer(engine);
  const script = container.runScript({ script: ': > /var/tmp/begun\nsleep 600', timeoutMs: 60_000 });
  const outcome = expect(script).rejects.toMatchObject(lost);
  await untilFile(engine, '/var/tmp/begun');
  await dockerOf(engine).getContainer(container.id).kill();
  await outcome;
});

test('a command that is killed by what runs inside has a result', async () => {
  await using container = await startedContainer(engine);
  const command = await container.exec({ argv: ['sh', '-c', 'kill -9 $$'], timeoutMs: 60_000 });
  expect(command).toMatchObject({ ended: 'exited', exitCode: 137 });
});

test('commands that are about to start when their container is killed are not said to be unable to start', async () => {
  for (let round = 0; round < 4; round += 1) {
    await using container = await startedContainer(engine);
    const running = new AbortController();
    const outcomes = new Set<string>();
    // The engine notes the end some time after it, and meanwhile passes on what its runtime says.
    const again = async (start: () => Promise<{ ended: string }>) => {
      while (!running.signal.aborted)
        outcomes.add(
          await start().then(
            ({ ended }) => ended,
            ({ kind }) => kind,
          ),
        );
    };
    const starting = [
      again(() => container.exec({ argv: ['true'], timeoutMs: 60_000 })),
      again(() => container.exec({ argv: ['true'], timeoutMs: 60_000 })),
      again(() => container.runScript({ script: 'true', timeoutMs: 60_000 })),
    ];
    await dockerOf(engine).getContainer(container.id).kill();
    await until(() => outcomes.has('infrastructure'));
    running.abort();
    await Promise.all(starting);
    expect([...outcomes]).not.toContain('not-started');
  }
});

/** A container as one whose processes can end it, such as one with a kernel of its own. */
async function endableContainer() {
  const started = await startedContainer(engine);
  const parts = {
    runtime: { listsProcesses: false, protectsPaths: true },
    reportsEvents: engine.capabilities.reportsEvents,
  };
  return containerOf(engine.port, started.id, await testSpec(engine), parts);
}

test('a container that could have ended itself, and is killed from outside, has no result', async () => {
  await using container = await endableContainer();
  const command = container.exec({ argv: ['sh', '-c', ': > /var/tmp/begun; sleep 600'], timeoutMs: 60_000 });
  // Where an engine does not say who ended a container, it counts as the agent.
  const outcome = engine.capabilities.reportsEvents
    ? expect(command).rejects.toMatchObject({ ...lost, code: 'ENGINE_EXEC_LOST' })
    : expect(command).resolves.toMatchObject(killedInside);
  await untilFile(engine, '/var/tmp/begun');
  await dockerOf(engine).getContainer(container.id).kill();
  await outcome;
});

const killedInside = { ended: 'exited', exitCode: 137 };

// As the kernel does it for lack of memory, from outside: nothing inside can end the first process with runc.
byRoot.test(
  'one that ends itself kills its commands, until all processes are ended and it starts again',
  async () => {
    await using container = await endableContainer();
    expect(await container.killAll()).toBe('restarted');
    const command = container.exec({
      argv: ['sh', '-c', 'echo begun; echo left > /var/tmp/begun; sleep 600'],
      timeoutMs: 60_000,
    });
    await untilFile(engine, '/var/tmp/begun');
    process.kill((await engine.port.containers.state(container.id)).initPid, 'SIGKILL');
    expect(await command).toMatchObject({ ...killedInside, stdout: { text: 'begun\n' } });

    const next = await container.exec({ argv: ['true'], timeoutMs: 60_000 });
    expect(next).toMatchObject(killedInside);
    const script = await container.runScript({ script: 'true', timeoutMs: 60_000 });
    expect(script).toMatchObject({ ended: 'finished', devicesIntact: false, steps: [{ ended: 'lost' }] });

    expect(await container.killAll()).toBe('restarted');
    const left = await container.exec({ argv: ['cat', '/var/tmp/begun'], timeoutMs: 60_000 });
    expect(left).toMatchObject({ ended: 'exited', exitCode: 0, stdout: { text: 'left\n' } });
  },
);
