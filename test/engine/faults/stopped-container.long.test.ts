import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../../src/engine/engine.ts';
import { dockerOf } from '../docker-of.ts';
import { startedContainer, testEngine, untilFile } from '../engine-fixture.ts';

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
  const script = container.runScript({ script: ': > /tmp/begun\nsleep 600', timeoutMs: 60_000 });
  const outcome = expect(script).rejects.toMatchObject(lost);
  await untilFile(engine, '/tmp/begun');
  await dockerOf(engine).getContainer(container.id).kill();
  await outcome;
});

test('a command that is killed by what runs inside has a result', async () => {
  await using container = await startedContainer(engine);
  const command = await container.exec({ argv: ['sh', '-c', 'kill -9 $$'], timeoutMs: 60_000 });
  expect(command).toMatchObject({ ended: 'exited', exitCode: 137 });
});
