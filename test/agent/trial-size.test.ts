import { expect, test } from 'vitest';
import { sizeOfTrial } from '../../src/agent/admission.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import type { PlannedService } from '../../src/suite/services.ts';
import { specOf } from '../trial/trial-bench.ts';

const mib = 2 ** 20;
const limits = { cpus: 0.5, memory: 256 * mib };

function service(name: string, resources: PlannedService['resources'] = {}): PlannedService {
  const image = { name: 'offsite/base', place: '' };
  return {
    name,
    image,
    resources,
    aliases: [],
    env: {},
    dependsOn: [],
    memoryFolders: [],
    healthcheck: 'none',
    place: '',
  };
}

const environment = (...services: PlannedService[]) => ({ ...noEnvironment, services });
const tests = {
  files: [],
  emptied: [],
  command: ['true'],
  env: {},
  timeoutMs: 1,
  reading: { kind: 'reward-files' as const, json: '/r.json', text: '/r.txt' },
  thresholds: { default: 1, byName: {} },
};
const brought = { kind: 'artifacts' as const, artifacts: [], sealed: [] };
const fresh = { ...tests, fresh: { environment: undefined, brought } };

test('a trial without services has the size of its sandbox', () => {
  expect(sizeOfTrial(specOf('', {}, limits))).toEqual({ sandbox: limits, services: { cpus: 0, memory: 0 } });
});

test('a service has its own limits, or else those of the sandbox', () => {
  const db = service('db', { memory: 100 * mib });
  const spec = specOf('', { environment: environment(db, service('web')) }, limits);
  expect(sizeOfTrial(spec).services).toEqual({ cpus: 1, memory: 356 * mib });
  // In the sandbox of the agent, tests reach the same services.
  expect(sizeOfTrial({ ...spec, tests }).services).toEqual({ cpus: 1, memory: 356 * mib });
});

test('the services of tests in a sandbox of their own run beside those of the trial', () => {
  const spec = specOf('', { environment: environment(service('db')), tests: fresh }, limits);
  expect(sizeOfTrial(spec).services).toEqual({ cpus: 1, memory: 512 * mib });
  const sandbox = { ...spec.sandbox, cpus: 2, memory: mib };
  const testsIn = { environment: environment(service('other'), service('one')), sandbox };
  expect(sizeOfTrial({ ...spec, testsIn }).services).toEqual({ cpus: 4.5, memory: 258 * mib });
});

test('of a task with steps, the largest step counts', () => {
  const spec = specOf('', { environment: noEnvironment }, limits);
  const { cpus, memory } = limits;
  const of = (count: number) => ({
    name: `step-${count}`,
    tests: fresh,
    testsIn: {
      environment: environment(...Array.from({ length: count }, () => service('s'))),
      sandbox: spec.sandbox,
    },
  });
  const steps = { list: [of(1), of(3), of(2)] } as unknown as NonNullable<typeof spec.steps>;
  expect(sizeOfTrial({ ...spec, steps }).services).toEqual({ cpus: 3 * cpus, memory: 3 * memory });
});
