import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Capabilities } from '../../src/engine/port/engine-port.ts';
import { testEngine, testSpec } from '../engine/engine-fixture.ts';
import { openTrialBench } from './trial-bench.ts';

let engine: Engine;
let as: Capabilities;
beforeAll(async () => {
  engine = await testEngine();
  as = { ...engine.capabilities };
});
afterAll(() => engine?.[Symbol.asyncDispose]());

/** A sandbox that is to lack nothing. The engine lacks nothing from now on. */
function wholeSpec(): Promise<ContainerSpec> {
  Object.assign(engine.capabilities, as);
  return testSpec(engine);
}

/** Engines on which a sandbox would run without the filter of system calls, or might. */
const engines: [string, Partial<Capabilities>, RegExp][] = [
  ['whose runtime has a kernel of its own', { defaultRuntime: 'runsc' }, /the runtime runsc may ignore one/],
];

test.each(engines)('an engine %s is refused, unless the sandbox says otherwise', async (_, lack, reason) => {
  const spec = await wholeSpec();
  Object.assign(engine.capabilities, lack);
  await expect(engine.createContainer(spec)).rejects.toMatchObject({
    code: 'ENGINE_CANNOT_ENFORCE',
    message: expect.stringMatching(reason),
  });
  await using container = await engine.createContainer({ ...spec, filter: 'if-available' });
  await container.start();
});

test('an engine whose default runtime is not known is refused with what to write', async () => {
  const spec = await wholeSpec();
  Object.assign(engine.capabilities, { defaultRuntime: 'nvidia', runtimes: ['nvidia', 'runc'] });
  await expect(engine.createContainer(spec)).rejects.toMatchObject({
    message: expect.stringMatching(/: a filter of system calls: the runtime nvidia may ignore one$/),
    hint: expect.stringMatching(/sandboxes: { NAME: { runtime: runc } }.*"default-runtime": "runc"/),
  });
});

test('an engine of another architecture is refused, whatever the sandbox says', async () => {
  const spec = await wholeSpec();
  Object.assign(engine.capabilities, { arch: 's390x' });
  const lenient = engine.createContainer({ ...spec, filter: 'if-available' });
  await expect(lenient).rejects.toThrow(/own programs for s390x \(there are some for x86_64 and aarch64\)/);
});

test('a kernel without seccomp is refused as well', async () => {
  const spec = await wholeSpec();
  Object.assign(engine.capabilities, { security: { ...as.security, seccomp: false } });
  await expect(engine.createContainer(spec)).rejects.toThrow(/its kernel has no seccomp/);
});

test('a trial on such an engine says what its sandboxes lacked, and is void where it is not to lack anything', async () => {
  Object.assign(engine.capabilities, as, { security: { ...as.security, seccomp: false } });
  await using bench = await openTrialBench({ engine });
  const verify = 'true';
  expect(await bench.trial('true', { verify }, { seccomp: 'if-available' })).toMatchObject({
    verdict: 'passed',
    sandboxLacks: [expect.stringMatching(/^a filter of system calls: its kernel has no seccomp/)],
  });
  expect(await bench.trial('true', { verify })).toMatchObject({
    verdict: 'void',
    cause: { phase: 'sandbox', message: expect.stringContaining('a filter of system calls') },
  });
});

test('a trial whose sandboxes lack nothing says nothing of it', async () => {
  Object.assign(engine.capabilities, as);
  await using bench = await openTrialBench({ engine });
  const result = await bench.trial('true', { verify: 'true' });
  expect(result.verdict).toBe('passed');
  expect(result).not.toHaveProperty('sandboxLacks');
});
