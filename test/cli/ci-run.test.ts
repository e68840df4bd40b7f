import { expect, test } from 'vitest';
import { emptiedText } from '../../src/api/data-folder.ts';
import { ciRun } from '../../src/api/types.ts';
import { plainText } from '../../src/text/output.ts';
import { offsiteHere as offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test.for<[string, Record<string, string>, string | undefined]>([
  ['nothing', {}, undefined],
  [
    'a job of GitLab',
    { CI_JOB_URL: 'https://gitlab.example/a/-/jobs/7' },
    'https://gitlab.example/a/-/jobs/7',
  ],
  ['a build of Jenkins', { BUILD_URL: 'http://jenkins.example/job/a/7/' }, 'http://jenkins.example/job/a/7/'],
  [
    'a run of GitHub Actions',
    { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'a/b', GITHUB_RUN_ID: '7' },
    'https://github.com/a/b/actions/runs/7',
  ],
  ['a part of one', { GITHUB_SERVER_URL: 'https://github.com' }, undefined],
  ['an address with a password', { BUILD_URL: 'https://me:secret@jenkins.example/7' }, undefined],
  ['no address', { BUILD_URL: 'javascript:alert(1)' }, undefined],
  ['an empty text', { BUILD_URL: '', CI_JOB_URL: '' }, undefined],
])('of an environment with %s', ([, env, expected]) => {
  expect(ciRun(env)).toBe(expected);
});

test.for([
  ['/ci/a/home', { GITHUB_WORKSPACE: '/ci/a' }, true],
  ['/ci/a', { CI_PROJECT_DIR: '/ci/a/' }, true],
  ['/ci/ab', { CI_PROJECT_DIR: '/ci/a' }, false],
  ['/ci/a', { GITHUB_WORKSPACE: '/ci/a/b', CI_PROJECT_DIR: '' }, false],
  ['/ci/a', {}, false],
] as const)('a data folder %s with the workspace %o lies in it: %s', ([folder, env, isIn]) => {
  const said = emptiedText(folder, env);
  expect(
    said !== undefined && plainText(said).includes(`${folder} lies in the workspace of this CI job`),
  ).toBe(isIn);
});

test('a command that keeps results in the workspace of its job says so', async () => {
  using place = openPlace();
  const env = { GITHUB_WORKSPACE: place.folder };
  const resumed = await offsite(place, ['resume'], { env });
  expect(resumed.stderr).toMatch(
    /^the data folder \S+ lies in the workspace of this CI job, which runners empty/,
  );
});
