import { expect, test } from 'vitest';
import { isSameEnvironment } from '../../src/agent/regrade-batch.ts';
import type { CaseTests } from '../../src/suite/case-tests.ts';
import type { CaseEnvironment } from '../../src/suite/environment.ts';
import { stepsContent } from '../../src/suite/plan.ts';

function environment(folder: string, { hash = 'h', place = 'none' } = {}): CaseEnvironment {
  const build = {
    name: `${folder}/Dockerfile`,
    file: `/${folder}/Dockerfile`,
    dockerfile: 'FROM a',
    args: {},
    images: {},
    place: `${folder}/suite.yaml:3:5`,
    context: { folder: `/${folder}`, ignore: '', hash },
  };
  const service = {
    name: 'db',
    aliases: [],
    env: {},
    dependsOn: [],
    memoryFolders: [],
    resources: {},
    image: { name: 'db', place: `${folder}/suite.yaml:7:7` },
    place: `${folder}/suite.yaml:6:5`,
  };
  return { env: { place }, resources: {}, build, services: [service] };
}

test('where an environment is named does not matter, and what is in it does', () => {
  const one = environment('one');
  expect(isSameEnvironment(one, environment('other'))).toBe(true);
  expect(isSameEnvironment({ ...one, user: undefined }, one)).toBe(true);
  const from = (commit: string, repository: string) => ({
    ...one,
    source: {
      url: '..',
      ref: undefined,
      commit,
      history: 'commit' as const,
      repository,
    },
  });
  expect(isSameEnvironment(from('c1', '/a/sources/1'), from('c1', '/b/sources/2'))).toBe(true);
  expect(isSameEnvironment(from('c1', '/a'), from('c2', '/a'))).toBe(false);
  expect(isSameEnvironment(one, environment('one', { hash: 'i' }))).toBe(false);
  expect(isSameEnvironment(one, environment('one', { place: 'x' }))).toBe(false);
  expect(isSameEnvironment(one, { ...one, services: undefined })).toBe(false);
  const [service] = one.services ?? [];
  const changed = service && { ...service, command: ['x'] };
  expect(isSameEnvironment(one, { ...one, services: changed && [changed] })).toBe(false);
});

test('where the environments of the tests of steps are named does not matter either', () => {
  const steps = (folder: string, hash = 'h') => {
    const tests = { command: ['true'], fresh: { environment: environment(folder, { hash }) } };
    return stepsContent({ list: [{ tests: tests as unknown as CaseTests }] });
  };
  expect(steps('one')).toEqual(steps('other'));
  expect(steps('one')).not.toEqual(steps('one', 'i'));
});
