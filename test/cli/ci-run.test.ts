import { expect, test } from 'vitest';
import { ciRun } from '../../src/api/types.ts';

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
