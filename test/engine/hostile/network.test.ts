import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { dockerOf } from '../docker-of.ts';
import { startedContainer } from '../engine-fixture.ts';
import { engine, sharedEngine } from '../shared-engine.ts';

const probeProgram = readFileSync(new URL('./network-probe.py', import.meta.url));

sharedEngine();

test('without a network, gateway, host, metadata address, containers and names are unreachable', async () => {
  await using sealed = await startedContainer(engine);
  // Another sandbox that does have a network, and so an address that can be tried.
  await using other = await startedContainer(engine, { network: 'open' });
  const { NetworkSettings } = await dockerOf(engine).getContainer(other.id).inspect();
  const { Gateway: gateway, IPAddress: address } = NetworkSettings.Networks.bridge ?? {};
  const host = Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map((hostInterface) => hostInterface.address);
  const targets = [gateway, address, ...host, '169.254.169.254'].filter((target) => target !== undefined);
  expect(targets.length).toBeGreaterThan(2);

  const result = await sealed.exec({
    argv: ['python3', '-', ...targets],
    stdin: probeProgram,
    timeoutMs: 60_000,
  });
  expect(result, result.stderr.text).toMatchObject({ ended: 'exited', exitCode: 0 });
  const found = JSON.parse(result.stdout.text);
  // The probe connects nowhere unless these hold, so that no packet leaves the machine even where this test
  // fails.
  expect(found).toMatchObject({ interfaces: ['lo'], routes: 0 });
  for (const target of targets)
    expect(found.connected[target], target).toEqual(['ENETUNREACH', 'ENETUNREACH']);
  expect(found.named).toBe('no address');
});
