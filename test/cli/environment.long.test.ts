import { expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('a case’s image is mapped and told; one that is missing is told once, and the other cases run', async () => {
  using place = openPlace();
  const suite = place.suite({
    trials: 2,
    run: 'pwd > where',
    config: { advanced: { images: { 'ubuntu:24.04': 'offsite/base' }, pull: 'never' } },
    cases: [
      {
        id: 'mapped',
        environment: { image: 'ubuntu:24.04', workdir: '/app', env: { MODE: 'quick' } },
        verify: 'grep -x /app where',
      },
      { id: 'missing', environment: { image: 'nobody/has:this' }, verify: 'true' },
      { id: 'again', environment: { image: 'nobody/has:this' }, verify: 'true' },
    ],
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['run', suite]);
  expect(exitCode).toBe(3);
  expect(stdout).toContain('offsite/base was used in place of the image ubuntu:24.04');
  expect(stdout).toMatch(/mapped · worker\s+2\s+0\s+0/);
  expect(stdout).toMatch(/missing · worker\s+0\s+0\s+2/);
  expect(stderr.match(/the engine has no image nobody\/has:this/g)).toHaveLength(1);
  expect(stderr).toMatch(/task, in sandbox: \S+suite\.yaml:\d+:\d+: the engine has no image/);
  expect(stderr).toContain('○ image nobody/has:this failed: all trials of missing, again need it\n');

  const shown = await offsite(place, ['show', 'mapped/worker#0']);
  expect(shown.stdout).toContain('workspace /app');
  expect(shown.stdout).toContain('offsite/base in place of ubuntu:24.04');
  const look = ['sh', '-c', 'pwd; cat where; echo $MODE'];
  const args = ['trial', 'shell', '--data-folder', place.dataFolder, 'mapped/worker#0', '--', ...look];
  const shell = await offsite(place, args, { dataFolder: null });
  expect(shell.stdout).toContain('/app\n/app\nquick\n');
});

test('a case’s Dockerfile is built once and shown; one that fails is told once', async () => {
  using place = openPlace();
  place.write(
    'good/Dockerfile',
    `FROM offsite/base\nRUN echo ${crypto.randomUUID()} > /id && echo built-here\nWORKDIR /app\n`,
  );
  place.write(
    'bad/Dockerfile',
    `FROM offsite/base\nRUN echo the-reason-${crypto.randomUUID().slice(0, 8)} && false\n`,
  );
  const suite = place.suite({
    trials: 2,
    run: 'cp /id .',
    cases: [
      { id: 'good', environment: { build: { context: 'good' } }, verify: 'cmp id /id' },
      { id: 'bad', environment: { build: { context: 'bad' } }, verify: 'true' },
    ],
  });
  const { exitCode, stdout, stderr } = await offsite(place, ['run', suite]);
  expect(exitCode).toBe(3);
  expect(stdout).toMatch(/good · worker\s+2\s+0\s+0/);
  expect(stdout).toMatch(/bad · worker\s+0\s+0\s+2/);
  expect(stderr.match(/build of bad\/Dockerfile failed: the trials that need it are void/g)).toHaveLength(1);
  expect(stderr.match(/task, in build: \S+bad\/Dockerfile: /g)).toHaveLength(1);
  expect(stderr).toContain('the-reason-');
  const shown = await offsite(place, ['show', 'good/worker#0', '--transcript']);
  expect(shown.stdout).toContain('built-here');
  expect(shown.stdout).toContain('build of good/Dockerfile');
  const story = await offsite(place, ['show', 'good/worker#0']);
  expect(story.stdout).toContain('built from good/Dockerfile');
  const failed = await offsite(place, ['show', 'bad/worker#0']);
  expect(failed.stdout).toContain('the-reason-');
  const images = await offsite(place, ['engine', 'images', 'list'], { dataFolder: null });
  expect(images.stdout).toContain('build of good/Dockerfile');
});
