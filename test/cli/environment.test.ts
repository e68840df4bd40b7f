import { expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('a case’s image is mapped and told; one that is missing is told once, and the other cases run', {
  timeout: 240_000,
}, async () => {
  using place = openPlace();
  const suite = place.suite({
    trials: 2,
    run: 'pwd > where',
    config: { images: { 'ubuntu:24.04': 'offsite/base' } },
    cases: [
      {
        id: 'mapped',
        environment: { image: 'ubuntu:24.04', workdir: '/app', env: { MODE: 'quick' } },
        verify: 'grep -x /app where',
      },
      { id: 'missing', environment: { image: 'nobody/has:this' }, verify: 'true' },
    ],
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['run', suite]);
  expect(exitCode).toBe(3);
  expect(stdout).toContain('offsite/base was used in place of the image ubuntu:24.04');
  expect(stdout).toMatch(/mapped · worker\s+2\s+0\s+0/);
  expect(stdout).toMatch(/missing · worker\s+0\s+0\s+2/);
  expect(stderr.match(/the engine has no image nobody\/has:this/g)).toHaveLength(1);
  expect(stderr).toMatch(/task, in sandbox: \S+suite\.yaml:\d+:\d+: the engine has no image/);

  const shown = await offsite(place, ['show', 'mapped/worker#0']);
  expect(shown.stdout).toContain('workspace /app');
  expect(shown.stdout).toContain('offsite/base in place of ubuntu:24.04');
  const look = ['sh', '-c', 'pwd; cat where; echo $MODE'];
  const args = ['shell', '--data-folder', place.dataFolder, 'mapped/worker#0', '--', ...look];
  const shell = await offsite(place, args, { dataFolder: null });
  expect(shell.stdout).toContain('/app\n/app\nquick\n');
});
