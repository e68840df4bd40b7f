import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KeptChecks } from '../../src/check/kept-checks.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import type { CaseTests } from '../../src/suite/case-tests.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import type { TrialStep } from '../../src/trial/spec.ts';
import { specOf } from '../trial/trial-bench.ts';

const named = (name: string) => ({ image: { name, place: 'suite.yaml:1:1' } });
const withService = (name: string) => ({
  ...noEnvironment,
  services: [
    {
      ...named(name),
      name: 'db',
      aliases: [],
      env: {},
      dependsOn: [],
      memoryFolders: [],
      resources: {},
      place: '',
    },
  ],
});
const tests: CaseTests = {
  files: [],
  emptied: [],
  command: ['true'],
  env: {},
  timeoutMs: 1000,
  reading: { kind: 'reward-files', json: '/reward.json', text: '/reward.txt' },
  thresholds: { byName: {} },
  fresh: {
    environment: { ...withService('service-of-tests'), ...named('image-of-tests') },
    brought: { kind: 'artifacts', artifacts: [], sealed: [] },
  },
};
const step: TrialStep = {
  name: 'first',
  prompt: '',
  variables: {},
  files: [],
  emptied: [],
  artifacts: [],
  agent: {},
  tests,
};

test.each([
  ['of the case', 'image-of-case', { environment: { ...noEnvironment, ...named('image-of-case') } }],
  ['of a service', 'service', { environment: withService('service') }],
  ['of the tests', 'image-of-tests', { tests }],
  ['of a service of the tests', 'service-of-tests', { tests }],
  [
    'of the tests of a step',
    'image-of-tests',
    { steps: { list: [step], strategy: 'mean' as const, thresholds: { byName: {} } } },
  ],
])('a case is graded again with another image %s', async (_, image, change) => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-kept-'));
  const spec = specOf('true', change);
  const keyWith = (id: string) =>
    new KeptChecks(folder, {
      redactor: new Redactor([]),
      settings: undefined,
      again: false,
      now: 0,
      imageId: async (name) => (name === image ? id : 'another'),
    }).keyOf({ id: 'a', state: 'untouched', spec }, 1);
  const [one, same, other] = [await keyWith('one'), await keyWith('one'), await keyWith('two')];
  rmSync(folder, { recursive: true });
  expect(same).toBe(one);
  expect(other).not.toBe(one);
});

test('a case is not graded again because its clone is elsewhere', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-kept-'));
  const kept = new KeptChecks(folder, {
    redactor: new Redactor([]),
    settings: undefined,
    again: false,
    now: 0,
    imageId: async (name) => name,
  });
  const keyAt = (clone: string) => {
    const environment = { ...noEnvironment, image: { name: 'one', place: `${clone}/suite.yaml:1:1` } };
    const { sandbox, ...spec } = specOf('true', { environment });
    const testsIn = { environment, sandbox };
    const steps = {
      list: [{ ...step, tests: { ...tests, fresh: undefined }, testsIn }],
      strategy: 'mean' as const,
      thresholds: { byName: {} },
    };
    return kept.keyOf({ id: 'a', state: 'solved', spec: { ...spec, sandbox, testsIn, steps } }, 1);
  };
  expect(await keyAt('/one')).toBe(await keyAt('/two'));
  rmSync(folder, { recursive: true });
});
