import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeRepository } from '../suite/git/repository.ts';
import { eachPlace, place } from './each-place.ts';
import { offsite, start } from './offsite.ts';

eachPlace();

const look = [
  'git status --porcelain --branch > /tmp/status',
  'git log --all --format=%s > /tmp/log',
  'cat /tmp/status /tmp/log a.txt; ls -ln a.txt',
  'test "$(cat /tmp/status)" = "## main" && test "$(wc -l < /tmp/log)" = 1 && echo later >> a.txt',
  'git -c user.name=a -c user.email=a@b commit -qam done',
].join('\n');

test('an agent gets one commit, owned by its user, and a batch that goes on later gets the same one', async () => {
  const repository = makeRepository(join(place.folder, 'project', 'repo'));
  const first = repository.commit({ 'a.txt': 'one\n' });
  const variables = { act: look };
  const verify = 'test "$(git rev-parse HEAD~1)" = "$expected"\ntest "$(git show HEAD~1:a.txt)" = one';
  const source = { git: 'repo', ref: 'main' };
  const suite = place.suite({
    cases: [
      { id: 'root', source, variables: { ...variables, expected: first }, verify },
      {
        id: 'user',
        source,
        variables: { ...variables, expected: first },
        // It is not over before the command is killed.
        verify: `${verify}\nsleep 15`,
        environment: { user: 'node' },
      },
    ],
  });
  const running = start(place, ['run', suite, '--concurrency', '1']);
  await running.printed(/root · worker #0 +passed|passed.*root/);
  running.kill('SIGKILL');
  await running.ended;

  // The branch goes on, and then the repository is gone.
  repository.commit({ 'a.txt': 'two\n' });
  rmSync(repository.path, { recursive: true });
  const resumed = await offsite(place, ['resume']);
  expect(resumed.stderr).toMatch(/^resuming batch batch_\S+ of \S+suite\.yaml, begun \d.* ago$/m);
  expect(resumed.exitCode, resumed.stderr + resumed.stdout).toBe(0);
  expect(resumed.stdout).toMatch(/user · worker\s+1\s+0\s+0/);
  const shown = await offsite(place, ['show', 'user/worker#0']);
  expect(shown.stdout).toContain(`source   ${first}, main of repo`);
});

test('an agent finds no answer in a repository that has its own suite, in no file and no object', async () => {
  const project = join(place.folder, 'project');
  place.write('grade/validator.sh', '#!/bin/sh\n! grep -q ANSWER found.txt\n');
  const search = [
    '(cat *; git log -p --all; git cat-file --batch-all-objects --batch; git cat-file --batch-all-objects \\',
    '  --batch-check="%(objecttype) %(objectname)" | grep blob | cut -d" " -f2 | xargs -n1 git show) > /tmp/found 2>&1',
    'grep -ac "of the app" /tmp/found; mv /tmp/found found.txt',
  ].join('\n');
  const suite = place.suite({
    cases: [
      {
        id: 'search',
        source: { git: '.', ref: 'HEAD' },
        variables: { act: search },
        solution: { file: 'solve.sh' },
        verify: 'grep -q "of the app" found.txt',
        validator: { file: 'grade/validator.sh' },
      },
    ],
  });
  place.write('solve.sh', 'echo "ANSWER of the app" > found.txt\n');
  place.write('app.txt', 'of the app\n');
  makeRepository(project).commit({});
  const { exitCode, stdout, stderr } = await offsite(place, ['run', suite, '--fail-under', '1']);
  expect(exitCode, stderr + stdout).toBe(0);
  expect(stderr).toContain(
    'HEAD of .: left out of the workspace: suite.yaml, grade/validator.sh, solve.sh (3 files)',
  );
});

test('a source that cannot be fetched is told with its place, before anything starts', async () => {
  makeRepository(join(place.folder, 'project', 'repo')).commit({ a: '1' });
  const suite = place.suite({ cases: [{ id: 'a', source: { git: 'repo', ref: 'nope' }, verify: 'true' }] });
  for (const command of ['run', 'check', 'enqueue']) {
    const { exitCode, stderr } = await offsite(place, [command, suite]);
    expect(exitCode, stderr).toBe(2);
    expect(stderr).toMatch(/suite\.yaml:\d+:\d+: cases\[0\]\.source\.ref: .*no branch and no tag nope/);
  }
  const { stderr } = await offsite(place, ['service', 'start', suite]);
  expect(stderr).toContain('this command takes no git sources');
});

test('a gate that will have no case to judge, since the source is at another commit, ends before a trial', async () => {
  const repository = makeRepository(join(place.folder, 'project', 'repo'));
  const first = repository.commit({ 'a.txt': 'one\n' });
  const suite = (ref: string) =>
    place.suite({ run: 'true', cases: [{ id: 'a', source: { git: 'repo', ref }, verify: 'test -f a.txt' }] });
  expect((await offsite(place, ['run', suite('main')])).exitCode).toBe(0);
  repository.commit({ 'b.txt': 'two\n' });
  const gate = ['--compare-to', 'last', '--fail-on-case-regression'];
  const moved = await offsite(place, ['run', suite('main'), ...gate]);
  expect(moved).toMatchObject({ exitCode: 2, stdout: '' });
  expect(moved.stderr).toMatch(
    /^error: no case can be compared with batch_\S+, so no regression can be judged: its case changed: a \(source\)/m,
  );
  expect(moved.stderr).toContain('Name a fixed `ref`');
  const fixed = await offsite(place, ['run', suite(first), ...gate]);
  expect(fixed.exitCode, fixed.stderr).toBe(0);
  expect(fixed.stderr).toContain('no case regression');
});
