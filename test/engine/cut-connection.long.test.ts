import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { type CuttingProxy, cuttingProxy } from './cutting-proxy.ts';
import { startedContainer, testEngine, untilFile } from './engine-fixture.ts';
import { touch } from './touch.ts';

let proxy: CuttingProxy;
let engine: Engine;
let container: Container;
/** By a connection that is not cut. */
let direct: Engine;
beforeAll(async () => {
  proxy = await cuttingProxy();
  direct = await testEngine();
  engine = await testEngine({ host: proxy.host });
  container = await startedContainer(engine);
});
afterAll(async () => {
  await direct?.[Symbol.asyncDispose]();
  await engine?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
});

for (const how of ['end', 'reset'] as const) {
  test(`a connection cut (${how}) during a command is an infrastructure error, never a success`, async () => {
    const command = container.exec({
      argv: ['sh', '-c', 'echo first; sleep 600; echo second'],
      timeoutMs: 60_000,
      onOutput: () => proxy.cut(how),
    });
    await expect(command).rejects.toMatchObject({ code: 'ENGINE_EXEC_LOST', kind: 'infrastructure' });
    await container.killAll();
  });

  test(`a connection cut (${how}) during a script is one too, even if the script succeeds`, async () => {
    const file = `/tmp/cut-${how}`;
    const script = container.runScript({
      script: `: > ${file}.begun\nuntil [ -e ${file} ]; do sleep 0.02; done\necho second`,
      timeoutMs: 60_000,
    });
    const outcome = expect(script).rejects.toMatchObject({ kind: 'infrastructure' });
    await untilFile(engine, `${file}.begun`);
    proxy.cut(how);
    await touch(direct, container.id, file);
    await outcome;
    await container.killAll();
  });

  test(`a connection cut (${how}) while files are read is an error, never a short file`, async () => {
    await container.exec({ argv: ['sh', '-c', 'head -c 50000000 /dev/zero > /tmp/big'], timeoutMs: 60_000 });
    const read = async () => {
      for await (const entry of container.archive('/tmp/big')) {
        for await (const _ of entry.content()) proxy.cut(how);
      }
    };
    await expect(read()).rejects.toMatchObject({ kind: 'infrastructure' });
  });
}

test('a connection that is reset at its end, since nobody read the input, loses nothing', async () => {
  await using resetting = await cuttingProxy({ atEnd: 'reset' });
  await using through = await testEngine({ host: resetting.host });
  await using beside = await startedContainer(through);
  const ended = await beside.exec({
    argv: ['sh', '-c', 'sleep 0.2; head -c 3000000 /dev/zero; exit 7'],
    stdin: Buffer.alloc(2 ** 20),
    timeoutMs: 60_000,
  });
  expect(ended).toMatchObject({ ended: 'exited', exitCode: 7, stdout: { totalBytes: 3_000_000 } });
});
