import { describe, expect, test } from 'vitest';
import { type Machine, planEngine } from '../../scripts/set-up/installation.ts';

const fresh: Machine = {
  platform: 'linux',
  uid: 0,
  hasDockerd: false,
  hasAptGet: true,
  hasSystemd: false,
  noInstall: false,
};

describe('on a machine without a running engine', () => {
  test('a fresh Debian gets one installed and started', () => {
    expect(planEngine(fresh)).toEqual({ install: true, start: 'detached' });
    expect(planEngine({ ...fresh, hasSystemd: true })).toEqual({ install: true, start: 'systemd' });
  });

  test('an installed one is only started, with or without apt-get', () => {
    expect(planEngine({ ...fresh, hasDockerd: true, hasAptGet: false })).toEqual({
      install: false,
      start: 'detached',
    });
  });

  test.each([
    ['macOS', { platform: 'darwin' }, 'Docker Desktop'],
    ['Windows', { platform: 'win32' }, 'WSL'],
    ['a plain user', { uid: 1000 }, 'sudo apt-get install docker.io'],
    [
      'a plain user with one installed',
      { uid: 1000, hasDockerd: true, hasSystemd: true },
      'systemctl start docker',
    ],
    ['a Linux without apt-get', { hasAptGet: false }, 'DOCKER_HOST'],
    ['somebody who forbids it', { noInstall: true }, 'apt-get install docker.io'],
  ] as [string, Partial<Machine>, string][])(
    '%s is told what is missing and how to get it',
    (_who, change, hint) => {
      const plan = () => planEngine({ ...fresh, ...change });
      expect(plan).toThrow(expect.objectContaining({ code: 'ENGINE_MISSING', kind: 'input' }));
      expect(plan).toThrow(expect.objectContaining({ hint: expect.stringContaining(hint) }));
    },
  );
});
