import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ContainerSpec } from '../../../src/engine/container/container-spec.ts';
import { startedContainer } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

const probeProgram = readFileSync(new URL('./privilege-probe.py', import.meta.url));

sharedEngine();

const profiles: [string, Partial<ContainerSpec>][] = [
  ['compatible', { security: 'compatible' }],
  ['strict', { security: 'strict', user: '1000:1000' }],
];

/** What each attempt came to: `allowed`, or the name of the error. */
async function attempts(changes: Partial<ContainerSpec>): Promise<Record<string, string>> {
  await using container = await startedContainer(engine, changes);
  const result = await container.exec({ argv: ['python3', '-'], stdin: probeProgram, timeoutMs: 60_000 });
  expect(result, result.stderr.text).toMatchObject({ ended: 'exited', exitCode: 0 });
  return JSON.parse(result.stdout.text);
}

describe.each(profiles)('in the profile "%s"', (_, changes) => {
  let found: Record<string, string>;
  beforeAll(async () => {
    found = await attempts(changes);
  });

  const outcome = (prefix: string) => Object.entries(found).filter(([name]) => name.startsWith(prefix));
  const refused = (prefix: string, errors: RegExp) => {
    const seen = outcome(prefix);
    expect(seen.length).toBeGreaterThan(0);
    for (const [name, result] of seen) expect(result, name).toMatch(errors);
  };

  test('nothing can be mounted or unmounted', () => refused('mount', /^EPERM$/));
  test('no namespace can be made or entered', () => refused('namespace', /^EPERM$/));
  test('no raw or packet socket can be opened', () => refused('socket', /^(EPERM|EAFNOSUPPORT)$/));
  test('no device can be made', () => refused('device', /^EPERM$/));
  test("the kernel's modules, clock, keys, tracing and file handles are out of reach", () =>
    refused('kernel', /^(EPERM|ENOSYS)$/));
  test("nothing that steers the kernel or the container's own limits can be opened for writing", () =>
    refused('write', /^(EROFS|EACCES|EPERM|ENOENT)$/));

  test('the first process, which outlives all others, cannot be traced by its own user', () =>
    refused('init', /^EPERM$/));
});
