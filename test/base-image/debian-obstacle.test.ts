import { expect, test } from 'vitest';
import { type DebianSituation, debianObstacle } from '../../src/base-image/build-from-debian.ts';

const debian: DebianSituation = {
  platform: 'linux',
  uid: 0,
  hasMmdebstrap: false,
  hasAptGet: true,
  mayInstall: true,
  hostArch: 'x64',
  engineArch: 'x86_64',
};

test('root on a Debian can build the image from packages', () => {
  expect(debianObstacle(debian)).toBeUndefined();
  expect(debianObstacle({ ...debian, hostArch: 'arm64', engineArch: 'aarch64' })).toBeUndefined();
});

test('an installed mmdebstrap needs neither apt-get nor leave to install', () => {
  const installed = { ...debian, hasMmdebstrap: true, hasAptGet: false, mayInstall: false };
  expect(debianObstacle(installed)).toBeUndefined();
});

test.each([
  ['macOS', { platform: 'darwin' }, 'this is darwin'],
  ['a processor without a Node', { hostArch: 'riscv64', engineArch: 'riscv64' }, 'no Node for riscv64'],
  ['an engine of another architecture', { engineArch: 'aarch64' }, 'the engine runs aarch64'],
  ['a plain user', { uid: 1000 }, 'needs root'],
  ['a distribution without apt-get', { hasAptGet: false }, 'no apt-get'],
  ['OFFSITE_NO_INSTALL', { mayInstall: false }, 'OFFSITE_NO_INSTALL'],
] as [string, Partial<DebianSituation>, string][])('%s is named as the obstacle', (_who, change, reason) => {
  expect(debianObstacle({ ...debian, ...change })).toContain(reason);
});
