import { expect, test } from 'vitest';
import { readPlan, storedPlan } from '../../src/agent/batch-run.ts';
import { trialSpec } from '../../src/agent/trial-spec.ts';
import type { Setup } from '../../src/contract/record.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import { faultPlan } from '../faults/fault-plan.ts';

const [variant] = faultPlan.variants;
const [planned] = faultPlan.cases;
if (!variant || !planned) throw new Error('the plan has a case and a variant');

const trial = { batchId: 'batch', runId: 'run', ordinal: 0 };
const specOf = (one: typeof planned, setup?: Setup) =>
  trialSpec(faultPlan, { case: one, variant }, trial, setup);

test('a case changes the image, the user and the limits of its variant’s sandbox', () => {
  const environment = {
    image: { name: 'a', mappedTo: 'b', place: 'suite.yaml:1:1' },
    user: 'app',
    env: {},
    resources: { memory: 1024 },
  };
  const local = { ...planned.local, environment };
  const { sandbox } = specOf({ ...planned, local });
  expect(sandbox).toEqual({ ...variant.sandbox, image: 'b', user: 'app', memory: 1024 });
});

test('a plan that an older Offsite stored has no environments, and runs as it did', () => {
  const { environment: _, ...local } = planned.local;
  const older = { ...planned, local: local as typeof planned.local };
  const { environment, sandbox } = specOf(older);
  expect({ environment, sandbox }).toEqual({ environment: noEnvironment, sandbox: variant.sandbox });
});

test('a stored plan keeps an environment’s files byte for byte', () => {
  const content = Buffer.from([0, 255, 128, 10]);
  const files = [
    { path: 'a', content, mode: 0o755 },
    { path: 'b', linkTarget: 'a' },
  ];
  const environment = { ...noEnvironment, workdir: '/app', files };
  const cases = [{ ...planned, local: { ...planned.local, environment } }, planned];
  const stored = JSON.parse(JSON.stringify(storedPlan({ ...faultPlan, cases })));
  expect(readPlan(stored).cases.map(({ local }) => local.environment)).toEqual([environment, noEnvironment]);
});

test('tests in an environment of their own keep it in a stored plan, and have a sandbox of their own', () => {
  const own = {
    ...noEnvironment,
    image: { name: 'checker', place: 'task.toml:1:1' },
    user: 'nobody',
    files: [{ path: '/check', content: Buffer.from([0, 0xff]), mode: 0o644 }],
  };
  const tests = {
    files: [],
    emptied: [],
    command: ['true'],
    env: {},
    timeoutMs: 1,
    reading: { kind: 'printed-tests' as const, parser: 'pytest' as const },
    thresholds: { default: 1, byName: {} },
    fresh: { environment: own, brought: { kind: 'artifacts' as const, artifacts: [], sealed: [] } },
  };
  const environment = { ...noEnvironment, user: 'app', resources: { memory: 1024 } };
  const cases = [{ ...planned, local: { ...planned.local, environment, tests } }];
  const stored = JSON.parse(JSON.stringify(storedPlan({ ...faultPlan, cases })));
  const [read] = readPlan(stored).cases;
  expect(read?.local.tests).toEqual(tests);
  const { testsIn, sandbox } = specOf(read ?? planned);
  expect(sandbox).toMatchObject({ user: 'app', memory: 1024 });
  expect(testsIn?.environment).toEqual(own);
  expect(testsIn?.sandbox).toEqual({ ...variant.sandbox, image: 'checker', user: 'nobody' });
});

test('variables are expanded once, whether or not the service expands or trims texts', () => {
  const variables = { name: 'a {{name}} b' };
  const verify = 'echo {{name}}\n';
  const given = { ...planned, request: { ...planned.request, variables, verify } };
  const pulled = (text: string) => specOf(given, { verify: text }).verify;
  expect(specOf(given).verify).toBe('echo a {{name}} b\n');
  expect(pulled(verify)).toBe('echo a {{name}} b\n');
  expect(pulled('echo {{name}}')).toBe('echo a {{name}} b');
  expect(pulled('echo a {{name}} b\n')).toBe('echo a {{name}} b\n');
  expect(pulled('echo else')).toBe('echo else');
});
