import { describe, expect, test } from 'vitest';
import { runsOf } from './ask.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

const cases = [{ id: 'one', verify: 'true' }];

describe.concurrent('offsite run starts nothing at the service where the engine', () => {
  test('does not answer, and says where it looked and what to do', async () => {
    using place = openPlace();
    const suite = place.suite({ cases });
    const env = { DOCKER_HOST: 'unix:///nonexistent/docker.sock' };
    const { exitCode, stdout, stderr } = await offsite(place, ['run', suite], { env });
    expect([exitCode, stdout]).toEqual([3, '']);
    expect(stderr).toContain('No engine answers');
    expect(stderr).toContain('unix:///nonexistent/docker.sock (DOCKER_HOST)');
    expect(stderr).toContain('DOCKER_HOST names this engine');
    expect(stderr).not.toContain('    at ');
    expect(await runsOf(place, 'one')).toEqual([]);
  });

  test('does not have the image, and says which and how to get it', async () => {
    using place = openPlace();
    const suite = place.suite({ cases, sandbox: { image: 'nobody/has:this' } });
    const { exitCode, stdout, stderr } = await offsite(place, ['run', suite]);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /offsite\.yaml:\d+:\d+: sandboxes\.local\.image: the engine has no image nobody\/has:this, which the sandbox/,
    );
    expect(stderr).toContain('docker pull nobody/has:this');
    expect(stderr).not.toContain('resume');
    expect(await runsOf(place, 'one')).toEqual([]);
  });

  test('cannot hold a sandbox to its limits, which is the configuration to be changed', async () => {
    using place = openPlace();
    const suite = place.suite({ cases, sandbox: { cpus: 4096 } });
    const { exitCode, stdout, stderr } = await offsite(place, ['run', suite]);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain('4096 processors');
    expect(await runsOf(place, 'one')).toEqual([]);
  });
});
