import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { DockerClient } from '../../src/engine/docker/client.ts';
import { readPodmanFacts } from '../../src/engine/podman/open.ts';

interface PodmanInfo {
  cgroupVersion: '1' | '2';
  rootless: boolean;
  controllers: string[];
  swapLimit: boolean;
}

/** The limits that Offsite sees, where Podman tells this of itself. */
async function limitsOf({ cgroupVersion, rootless, controllers, swapLimit }: PodmanInfo) {
  const client = (answer: unknown) =>
    ({ clock: systemClock, apiVersion: '1.41', ask: async () => answer }) as unknown as DockerClient;
  const docker = client({ Architecture: 'amd64', CgroupVersion: cgroupVersion, SwapLimit: swapLimit });
  const native = client({ host: { cgroupControllers: controllers, security: { rootless } } });
  return (await readPodmanFacts({ docker, native })).limits;
}

const controllers = ['cpu', 'io', 'memory', 'pids'];
const all = { memory: true, swap: true, pids: true, cpu: true };

test('with version 2 of control groups, Podman limits swap, which it never says', async () => {
  const info = { cgroupVersion: '2', controllers, swapLimit: false } as const;
  expect(await limitsOf({ ...info, rootless: false })).toEqual(all);
  expect(await limitsOf({ ...info, rootless: true })).toEqual(all);
});

test('without root it limits what systemd delegates, and with version 1 nothing', async () => {
  const info = { rootless: true, swapLimit: false };
  const none = { memory: false, swap: false, pids: false, cpu: false };
  expect(await limitsOf({ ...info, cgroupVersion: '2', controllers: ['memory', 'pids'] })).toEqual({
    ...all,
    cpu: false,
  });
  expect(await limitsOf({ ...info, cgroupVersion: '2', controllers: [] })).toEqual(none);
  expect(await limitsOf({ ...info, cgroupVersion: '1', controllers, swapLimit: true })).toEqual(none);
});

test('with version 1, Podman says whether the kernel counts swap', async () => {
  const info = { cgroupVersion: '1', rootless: false, controllers } as const;
  expect(await limitsOf({ ...info, swapLimit: true })).toEqual(all);
  expect(await limitsOf({ ...info, swapLimit: false })).toEqual({ ...all, swap: false });
});
