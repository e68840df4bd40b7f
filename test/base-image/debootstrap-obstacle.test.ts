import { expect, test } from 'vitest';
import { type DebootstrapSituation, debootstrapObstacle } from '../../src/base-image/debootstrap-obstacle.ts';

const debian: DebootstrapSituation = {
  platform: 'linux',
  uid: 0,
  hasDebootstrap: false,
  hasAptGet: true,
  mayInstall: true,
  hostArch: 'x64',
  engineArch: 'x86_64',
};

test('root on a Debian can build the image from packages', () => {
  expect(debootstrapObstacle(debian)).toBeUndefined();
  expect(debootstrapObstacle({ ...debian, hostArch: 'arm64', engineArch: 'aarch64' })).toBeUndefined();
});

test('an installed debootstrap needs neither apt-get nor leave to install', () => {
  const installed = { ...debian, hasDebootstrap: true, hasAptGet: false, mayInstall: false };
  expect(debootstrapObstacle(installed)).toBeUndefined();
});

test.each([
  ['macOS', { platform: 'darwin' }, 'this is darwin'],
  ['an engine of another architecture', { engineArch: 'aarch64' }, 'the engine runs aarch64'],
  ['a plain user', { uid: 1000 }, 'needs root'],
  ['a distribution without apt-get', { hasAptGet: false }, 'no apt-get'],
  ['OFFSITE_NO_INSTALL', { mayInstall: false }, 'OFFSITE_NO_INSTALL'],
] as [string, Partial<DebootstrapSituation>, string][])(
  '%s is named as the obstacle',
  (_who, change, reason) => {
    expect(debootstrapObstacle({ ...debian, ...change })).toContain(reason);
  },
);
