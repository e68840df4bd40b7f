import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../src/base/canonical-json.ts';
import { KnownKeys } from '../../src/redaction/redactor.ts';
import { environmentContent, testsContent } from '../../src/suite/plan.ts';
import { expandVariables } from '../../src/suite/variables.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { eachTaskSet, set } from './each-task-set.ts';

eachTaskSet();

const parts = { except: [], images: { debian: 'offsite/base' }, keys: undefined };

const full = `
artifacts = ["/app/out/"]
[task]
name = "org/greet"
keywords = ["small"]
[agent]
timeout_sec = 30
[verifier]
timeout_sec = 20
user = "nobody"
env = { MODE = "hard", KEY = "\${KEY:-none}" }
[solution]
env = { HOW = "well" }
[environment]
network_mode = "no-network"
build_timeout_sec = 10
workdir = "/app"
cpus = 0.5
memory_mb = 100
storage_mb = 200
env = { A = "b" }
healthcheck = { command = "test -e /ready", interval_sec = 1, retries = 5 }
`;

test('a task becomes a case with its environment, its tests and its solution', () => {
  set.harbor('greet', {
    'task.toml': full,
    'instruction.md': 'Keep {{this}} and {{instruction}}.\n',
    'tests/data/expected': 'yes\n',
    'solution/solve.sh': 'true\n',
  });
  const { cases, leftOut } = planTasks({ path: set.folder, threshold: { a: 0.5 } }, parts);
  expect(leftOut).toEqual([]);
  const [planned] = cases;
  expect(planned?.request).toEqual({
    id: 'greet',
    name: 'org/greet',
    tags: ['small'],
    variables: { instruction: 'Keep {{this}} and {{instruction}}.\n' },
  });
  const { environment, tests, oracle, artifacts } = planned?.local ?? {};
  expect(environment).toMatchObject({
    build: { name: 'greet/environment/Dockerfile', images: parts.images },
    workdir: '/app',
    env: { A: 'b' },
    resources: { cpus: 0.5, memory: 100 * 1024 ** 2, disk: 200 * 1024 ** 2 },
    timeouts: { build: 10_000, harness: 30_000 },
    healthcheck: { command: 'test -e /ready', interval: 1_000, timeout: 30_000, startPeriod: 0, retries: 5 },
  });
  expect(environment?.files?.map(({ path }) => path)).toEqual([
    '/logs/agent',
    '/logs/verifier',
    '/logs/artifacts',
  ]);
  expect(tests?.files.map(({ path }) => path)).toEqual(['/tests/data/expected', '/tests/test.sh']);
  expect(tests).toMatchObject({
    emptied: ['/tests', '/logs/verifier'],
    command: ['bash', '/tests/test.sh'],
    env: { MODE: 'hard', KEY: 'none' },
    user: 'nobody',
    timeoutMs: 20_000,
    thresholds: { default: 1, byName: { a: 0.5 } },
  });
  expect(oracle).toMatchObject({ command: ['bash', '/solution/solve.sh'], env: { HOW: 'well' } });
  expect(oracle?.files.map(({ path }) => path)).toEqual(['/solution/solve.sh']);
  expect(artifacts).toEqual(['/app/out', '/app/out/**']);
});

test('a separate verifier gets the artifacts, in an environment of its own or in a fresh one of the task', () => {
  const separate =
    'artifacts = ["/logs/out/", { source = "/app", exclude = ["*.o"] }]\n[agent]\ntimeout_sec = 3\n[verifier]\n' +
    'environment_mode = "separate"\n[environment]\nmemory_mb = 100\n';
  set.harbor('built', {
    'task.toml': `${separate}[verifier.environment]\nenv = { A = "b" }\nworkdir = "/check"\n`,
    'tests/Dockerfile': 'FROM debian\n',
  });
  set.harbor('fresh', { 'task.toml': separate });
  set.harbor('wrong', { 'task.toml': `${separate}[verifier.environment]\nworkdir = "/etc"\n` });
  const { cases, leftOut } = planTasks({ path: set.folder }, parts);
  const [built, fresh] = cases.map(({ local }) => local);
  const artifacts = [
    { path: '/logs/artifacts', exclude: [] },
    { path: '/logs/out', exclude: [] },
    { path: '/app', exclude: ['*.o'] },
  ];
  const sealed = ['/tests', '/logs/verifier'];
  expect(built?.tests).toMatchObject({
    files: [],
    emptied: ['/logs/verifier'],
    fresh: { brought: { artifacts, sealed } },
  });
  expect(built?.tests?.fresh?.environment).toMatchObject({
    build: { name: 'built/tests/Dockerfile' },
    workdir: '/check',
    env: { A: 'b' },
    resources: {},
  });
  expect(built?.environment).toMatchObject({ build: { name: 'built/environment/Dockerfile' } });
  expect(fresh?.tests).toMatchObject({
    emptied: sealed,
    fresh: { brought: { artifacts }, environment: undefined },
  });
  expect(fresh?.artifactsExcept).toEqual(['/app/**/*.o', '/app/**/*.o/**']);
  expect(leftOut).toMatchObject([
    {
      id: 'wrong',
      reasons: [{ message: 'verifier.environment.workdir: Offsite cannot use this folder as the workspace' }],
    },
  ]);
});

test('what an instruction has in braces stays as it is', () => {
  set.harbor('greet', { 'instruction.md': 'Keep {{instruction}} and \\{{x}}.' });
  const { cases } = planTasks({ path: set.folder }, parts);
  const variables = cases[0]?.request.variables ?? {};
  expect(expandVariables('{{instruction}}', variables, 'keep')).toBe('Keep {{instruction}} and \\{{x}}.');
});

test('files beside an image are put into the working folder', () => {
  set.harbor('greet', {
    'task.toml': '[environment]\ndocker_image = "debian"\n',
    'environment/Dockerfile': null,
    'environment/data.txt': 'data',
  });
  const { environment } = planTasks({ path: set.folder }, parts).cases[0]?.local ?? {};
  expect(environment?.image).toMatchObject({ name: 'debian', mappedTo: 'offsite/base' });
  expect(environment?.files?.[0]).toMatchObject({ path: 'data.txt', content: Buffer.from('data') });
});

test('a task of Terminal-Bench has its tests, its script and its solution', () => {
  set.terminalBench('old', { 'tests/test_it.py': 'def test(): pass\n', 'solution.sh': 'true\n' });
  const { tests, oracle } = planTasks({ path: set.folder }, parts).cases[0]?.local ?? {};
  expect(tests?.files.map(({ path }) => path)).toEqual(['/tests/test_it.py', '/tests/run-tests.sh']);
  expect(tests).toMatchObject({
    emptied: ['/tests'],
    command: ['bash', '/tests/run-tests.sh'],
    reading: { kind: 'printed-tests', parser: 'pytest' },
  });
  expect(oracle?.files.map(({ path }) => path)).toEqual(['/oracle/solution.sh']);
});

// Results of before an update can only be compared with those of after it while these stay as they are.
test.each([
  ['swe-bench', '90280da4b918e8b5', 'ccd4c3beca8908bb'],
  ['harbor', 'fff409263b4ebef2', '60bf1920f1c39633'],
  ['terminal-bench', '92639ee3f569ebfb', 'b2c4259683714243'],
])('a task of %s is the same for fingerprints after an update', (format, environment, tests) => {
  set.harbor('harbor');
  set.terminalBench('terminal-bench', { 'tests/test_it.py': 'def test(): pass\n', 'solution.sh': 'true\n' });
  const row = {
    instance_id: 'org__repo-1',
    repo: 'org/repo',
    base_commit: 'abc1234',
    problem_statement: 'It fails.',
    test_patch: 'diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n',
    FAIL_TO_PASS: ['t.py::a'],
    PASS_TO_PASS: ['t.py::c'],
  };
  set.write('swe-bench/rows.jsonl', JSON.stringify(row));
  const isRow = format === 'swe-bench';
  const path = `${set.folder}/${format}${isRow ? '/rows.jsonl' : ''}`;
  const [planned] = planTasks({ path, ...(isRow && { image: 'debian' }) }, parts).cases;
  if (!planned?.local.tests) throw new Error('it is not planned');
  // Where the task says which hosts it needs is no part of its tests.
  const { network: _, ...graded } = planned.local.tests;
  const hashOf = (value: unknown) => {
    const kept = canonicalJson(JSON.parse(JSON.stringify(value)));
    return createHash('sha256').update(kept).digest('hex').slice(0, 16);
  };
  expect([hashOf(environmentContent(planned.local.environment)), hashOf(testsContent(graded))]).toEqual([
    environment,
    tests,
  ]);
});

test('tasks that cannot run here are left out with their reasons, and the others are planned', () => {
  set.harbor('good');
  set.harbor('gpu', { 'task.toml': '[environment]\ngpus = 1\n' });
  set.harbor('unreadable', { 'task.toml': '[agent]\ntimeout_sec = "long"\n' });
  set.harbor('reserved', { 'task.toml': '[environment]\nenv = { LD_PRELOAD = "/x.so" }\n' });
  set.harbor('key', { 'tests/expected': 'my secret-key-1234\n' });
  set.harbor('asks-with-key', { 'instruction.md': 'Use secret-key-1234.\n' });
  const keys = new KnownKeys([['OPENAI_API_KEY', 'secret-key-1234']]);
  const { cases, leftOut } = planTasks({ path: set.folder }, { ...parts, keys });
  expect(cases.map(({ request }) => request.id)).toEqual(['good']);
  const found = Object.fromEntries(
    leftOut.map(({ id, state, reasons: [first] }) => [id, [state, first?.message]]),
  );
  expect(found).toEqual({
    'asks-with-key': ['unreadable', expect.stringContaining('holds the key in OPENAI_API_KEY')],
    gpu: ['does not run', expect.stringContaining('no GPU')],
    key: ['unreadable', expect.stringContaining('holds the key in OPENAI_API_KEY')],
    reserved: ['unreadable', expect.stringContaining('decides how programs run')],
    unreadable: ['unreadable', expect.stringContaining('expected a number')],
  });
});

test('tests that lead out of their task are not read', () => {
  set.write('secret', 'nobody should see this');
  set.harbor('greedy');
  set.link('greedy/tests/link', '../../secret');
  const { cases, leftOut } = planTasks({ path: set.folder }, parts);
  expect(cases).toEqual([]);
  expect(leftOut[0]?.reasons[0]?.message).toContain("leads out of the task's folder");
});

test('the time for a task does not grow with the number of tasks', () => {
  const ids = Array.from({ length: 150 }, (_, n) => `task-${n}`);
  for (const id of ids) set.harbor(id);
  const timeOf = (include: string[]) => {
    // Of the processor: a loaded machine has others take turns.
    const begun = process.cpuUsage();
    expect(planTasks({ path: set.folder, include }, parts).cases).toHaveLength(include.length);
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / include.length;
  };
  timeOf(ids.slice(0, 15));
  expect(timeOf(ids) / timeOf(ids.slice(0, 15))).toBeLessThan(5);
});
