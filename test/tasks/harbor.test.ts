import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { listTasks } from '../../src/tasks/list-tasks.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { eachTaskSet, set } from './each-task-set.ts';
import { issuesOf, notesOf, obstaclesOf, taskOf } from './task-set.ts';

eachTaskSet();

const toml = (text: string) => ({ 'task.toml': text });

test('the smallest task has the defaults of the format, and runs here', () => {
  const found = set.harbor('small');
  const task = taskOf(found);
  expect(task).toMatchObject({
    id: 'small',
    variables: { instruction: 'Write a file.\n' },
    environment: {
      build: {
        context: `${found.place}/environment`,
        dockerfile: `${found.place}/environment/Dockerfile`,
      },
      env: {},
      timeouts: { build: 600_000, harness: 60_000 },
    },
    agent: { hosts: [] },
    tests: {
      in: 'same',
      timeout: 600_000,
      command: ['bash', '/tests/test.sh'],
      rewards: { json: '/logs/verifier/reward.json', text: '/logs/verifier/reward.txt' },
      collect: [],
      threshold: 1,
    },
    placed: [{ from: `${found.place}/tests`, to: '/tests', ignored: [] }],
    artifacts: [],
    notes: [],
    obstacles: [],
  });
  expect(task.environment?.resources).toEqual({});
  expect(task.environment?.services).toBeUndefined();
  expect(task.solution).toBeUndefined();
});

test.each([
  ['#!/bin/bash -e\ntrue\n', ['/bin/bash', '-e']],
  ['#! /usr/bin/env -S bash -eu\r\ntrue\n', ['/usr/bin/env', '-S bash -eu']],
  ['#!/usr/bin/python3', ['/usr/bin/python3']],
  ['true\n#!/bin/sh\n', ['bash']],
  ['', ['bash']],
])('the first line of a script names what runs it: %j', (script, interpreter) => {
  const task = taskOf(set.harbor('one', { 'tests/test.sh': script, 'solution/solve.sh': script }));
  expect(task.tests?.command).toEqual([...interpreter, '/tests/test.sh']);
  expect(task.solution).toMatchObject({ command: [...interpreter, '/solution/solve.sh'] });
});

test('a step is graded by the program of its own script', () => {
  const task = taskOf(
    set.harbor('one', {
      'task.toml': '[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n',
      'tests/test.sh': '#!/bin/sh\n',
      'steps/first/instruction.md': 'one\n',
      'steps/second/instruction.md': 'two\n',
      'steps/second/tests/test.sh': '#!/bin/bash -e\n',
    }),
  );
  expect(task.steps?.map(({ tests }) => tests.command.slice(0, -1))).toEqual([
    ['/bin/sh'],
    ['/bin/bash', '-e'],
  ]);
});

test('every table and key that runs here is read', () => {
  const found = set.harbor('full', {
    'task.toml': `
schema_version = "1.4"
source = "a benchmark"
artifacts = ["/app/out.txt", { source = "/app/log", destination = "logs/log" }]
multi_step_reward_strategy = "final"

[task]
name = "org/full"
version = "2"
description = "All of it"
authors = [{ name = "A", email = "a@example.com" }]
keywords = ["one", "two"]

[metadata]
difficulty = "hard"
made = 2026-01-02
nested = { deep = [1, 2.5, true] }

[agent]
timeout_sec = 12.5

[verifier]
timeout_sec = 30
env = { LEVEL = "3" }
environment_mode = "shared"
network_mode = "no-network"

[environment]
build_timeout_sec = 120
os = "linux"
cpus = 1.5
memory_mb = 512
storage_mb = 2048
gpus = 0
network_mode = "no-network"
workdir = "/work"
mcp_servers = []

[environment.env]
MODE = "test"
COST = "$5 is not a \${variable}"

[solution.env]
KEY = "value"
`,
    'solution/solve.sh': 'true\n',
  });
  const task = taskOf(found);
  expect(notesOf(found)).toEqual(['artifacts task.toml:4:14', 'artifacts task.toml:4:30']);
  expect(task.obstacles).toEqual([]);
  expect(task).toMatchObject({
    name: 'org/full',
    tags: ['one', 'two'],
    agent: { hosts: [] },
    tests: { timeout: 30_000, env: { LEVEL: '3' }, hosts: [] },
    environment: {
      workdir: '/work',
      resources: { cpus: 1.5, memory: 512 * 1024 ** 2, disk: 2048 * 1024 ** 2 },
      timeouts: { build: 120_000, harness: 12_500 },
      env: { MODE: 'test', COST: `$5 is not a \${variable}` },
    },
    solution: {
      command: ['bash', '/solution/solve.sh'],
      env: { KEY: 'value' },
    },
    placed: [{ to: '/tests' }, { from: `${found.place}/solution`, to: '/solution' }],
    artifacts: ['/app/out.txt', '/app/out.txt/**', '/app/log', '/app/log/**'],
  });
});

describe('the instruction', () => {
  const canary = 'BENCHMARK DATA. canary GUID 26b5c67b';
  test.each([
    ['a comment of Markdown', `<!-- ${canary} -->\nDo it.\n`, 'Do it.\n'],
    ['lines of a script', `# ${canary}\n# harbor-canary 1\n\nDo it.\n`, 'Do it.\n'],
    ['a heading without that word', '# Title\nDo it.\n', '# Title\nDo it.\n'],
    ['a later line', `Do it.\n# ${canary}\n`, `Do it.\n# ${canary}\n`],
  ])('has no marks of a benchmark: %s', (_, written, read) => {
    expect(taskOf(set.harbor('task', { 'instruction.md': written })).variables).toEqual({
      instruction: read,
    });
  });
});

test('variables of the machine, with and without a default', () => {
  const found = set.harbor(
    'task',
    toml(`[verifier.env]\nA = "\${A}"\nB = "\${B:-x y}"\nC = "see \${C}"\nD = "\${D:-}"\n`),
  );
  expect(taskOf(found).tests?.env).toEqual({
    A: '',
    B: 'x y',
    C: `see \${C}`,
    D: '',
  });
});

test('servers, healthcheck, hosts and hooks', () => {
  const found = set.harbor(
    'task',
    toml(`
[environment]
network_mode = "allowlist"
allowed_hosts = ["a.example", "10.0.0.0/8"]
healthcheck = { command = "true", interval_sec = 1, retries = 5 }
mcp_servers = [
  { name = "one", url = "http://one:1/sse" },
  { name = "two", transport = "stdio", command = "serve", args = ["-v"] },
  { name = "three", transport = "http", url = "http://three", headers = { X = "y" } },
]
[verifier]
[[verifier.collect]]
command = "dump"
service = "db"
timeout_sec = 5
user = "postgres"
`),
  );
  const { environment, agent, tests } = taskOf(found);
  expect(agent?.hosts).toEqual(['a.example', '10.0.0.0/8']);
  expect(environment?.healthcheck).toEqual({
    command: 'true',
    interval: 1000,
    timeout: 30_000,
    startPeriod: 0,
    retries: 5,
  });
  expect(agent?.mcpServers).toEqual({
    one: { transport: 'sse', url: 'http://one:1/sse' },
    two: { command: 'serve', args: ['-v'], env: {} },
    three: { transport: 'http', url: 'http://three', headers: { X: 'y' } },
  });
  expect(tests?.collect).toEqual([{ command: 'dump', timeout: 5000, user: 'postgres' }]);
});

describe('a separate verifier', () => {
  const separate = toml('[verifier]\nenvironment_mode = "separate"\n');

  test('is a fresh environment of the task if nothing else is defined', () => {
    const { tests, placed } = taskOf(set.harbor('task', separate));
    expect(tests?.in).toBe('fresh');
    expect(tests?.environment).toBeUndefined();
    expect(placed).toMatchObject([{ to: '/tests' }]);
  });

  test('is built from the tests if they have a Dockerfile', () => {
    const found = set.harbor('task', { ...separate, 'tests/Dockerfile': 'FROM debian\n' });
    const { tests, placed } = taskOf(found);
    expect(tests?.environment?.build).toMatchObject({ context: `${found.place}/tests` });
    // They are in the image.
    expect(placed).toEqual([]);
  });

  test('may have services beside it', () => {
    const found = set.harbor('task', {
      'task.toml': 'verifier.environment_mode = "separate"\n',
      'tests/docker-compose.yaml':
        'services:\n  main: { image: debian }\n  db: { image: debian, healthcheck: { test: "true" } }\n',
    });
    expect(Object.keys(taskOf(found).tests?.environment?.services ?? {})).toEqual(['db']);
    expect(obstaclesOf(found)).toEqual([]);
  });

  test('is implied by an environment of its own, whose image needs no script in the tests', () => {
    const found = set.harbor('task', {
      'tests/test.sh': null,
      ...toml('[verifier.environment]\ndocker_image = "grader"\nmemory_mb = 64\n'),
    });
    expect(taskOf(found).tests).toMatchObject({
      in: 'fresh',
      environment: { image: 'grader', resources: { memory: 64 * 1024 ** 2 } },
    });
    expect(obstaclesOf(found)).not.toContainEqual(expect.stringContaining('no-tests'));
  });
});

describe('steps', () => {
  const two = {
    'instruction.md': null,
    'tests/test.sh': 'shared\n',
    'tests/helper.sh': '',
    'steps/one/instruction.md': '# canary\nFirst.\n',
    'steps/one/workdir/setup.sh': 'true\n',
    'steps/one/solution/solve.sh': 'true\n',
    'steps/two/instruction.md': 'Second.\n',
    'steps/two/tests/test.sh': 'own\n',
    'task.toml': `
artifacts = ["/app/all"]
[agent]
timeout_sec = 100
user = "dev"
[verifier]
timeout_sec = 7
env = { SHARED = "1", LEVEL = "task" }
[[steps]]
name = "one"
min_reward = 0.5
healthcheck = { command = "test -f x" }
[steps.agent]
timeout_sec = 10
[[steps]]
name = "two"
min_reward = { speed = 0.1, quality = 1 }
artifacts = [{ source = "/app/two", exclude = ["*.o"] }]
[steps.verifier]
timeout_sec = 9
env = { LEVEL = "step" }
`,
  };

  test('have their own parts, and those of the task where they have none', () => {
    const found = set.harbor('task', two);
    const { steps = [], variables, artifacts, placed } = taskOf(found);
    expect(variables).toBeUndefined();
    expect(artifacts).toEqual(['/app/all', '/app/all/**']);
    expect(steps).toMatchObject([
      {
        name: 'one',
        instruction: 'First.\n',
        agent: { user: 'dev' },
        timeout: 10_000,
        // The time of the task's verifier is never that of a step's.
        tests: { timeout: 600_000, env: { SHARED: '1', LEVEL: 'task' }, threshold: { reward: 0.5 } },
        setup: 'setup.sh',
        healthcheck: { command: 'test -f x' },
      },
      {
        name: 'two',
        timeout: 100_000,
        folders: {},
        tests: {
          timeout: 9000,
          env: { SHARED: '1', LEVEL: 'step' },
          threshold: { speed: 0.1, quality: 1 },
        },
        artifacts: ['/app/two', '/app/two/**'],
      },
    ]);
    expect(steps[1]?.solution).toBeUndefined();
    expect(placed).toMatchObject([
      { from: `${found.place}/tests`, to: '/tests' },
      { from: `${found.place}/steps/one/solution`, to: '/solution' },
      { from: `${found.place}/steps/one/workdir`, to: '.' },
      { from: `${found.place}/tests`, to: '/tests' },
      { from: `${found.place}/steps/two/tests`, to: '/tests' },
    ]);
  });

  test('collect with the commands of the task, then with their own', () => {
    const [command, own] = ['command = "all"', 'command = "own"'];
    const found = set.harbor('task', {
      ...two,
      'task.toml': `[[verifier.collect]]\n${command}\n[[steps]]\nname = "one"\n[[steps.verifier.collect]]\n${own}\n[[steps]]\nname = "two"\n`,
    });
    const commands = taskOf(found).steps?.map(({ tests }) => tests.collect?.map(({ command }) => command));
    expect(commands).toEqual([['all', 'own'], ['all']]);
  });

  test('have names that differ', () => {
    const twice = '[[steps]]\nname = "one"\n[[steps]]\nname = "one"\n';
    const found = set.harbor('task', { ...two, 'task.toml': twice });
    expect(issuesOf(found)).toEqual([
      'task.toml:4:1: steps[1].name: one is already the name of another step',
    ]);
  });

  test('become the steps of a case', () => {
    set.harbor('task', two);
    const { cases, leftOut } = planTasks(
      { path: set.folder, threshold: 0.5 },
      { except: [], images: { debian: 'offsite/base' }, keys: undefined },
    );
    expect(leftOut).toEqual([]);
    const [planned] = cases;
    expect(planned?.request.variables).toEqual({ instruction: 'First.\n\n\nSecond.\n' });
    expect(planned?.local.tests).toBeUndefined();
    expect(planned?.local.steps).toMatchObject({
      strategy: 'mean',
      thresholds: { default: 0.5, byName: {} },
      list: [
        {
          name: 'one',
          instruction: 'First.\n',
          setup: 'setup.sh',
          emptied: [],
          agent: { user: 'dev' },
          timeoutMs: 10_000,
          files: [{ path: 'setup.sh' }],
          healthcheck: { command: 'test -f x' },
          tests: {
            files: [{ path: '/tests/helper.sh' }, { path: '/tests/test.sh' }],
            thresholds: { byName: { reward: 0.5 }, required: true },
          },
          artifacts: ['/app/all', '/app/all/**'],
          oracle: { command: ['bash', '/solution/solve.sh'] },
        },
        {
          name: 'two',
          instruction: 'Second.\n',
          setup: undefined,
          emptied: ['/logs/agent', '/logs/artifacts'],
          tests: {
            env: { SHARED: '1', LEVEL: 'step' },
            thresholds: { byName: { speed: 0.1, quality: 1 } },
          },
          artifacts: ['/app/all', '/app/all/**', '/app/two', '/app/two/**'],
          artifactsExcept: ['/app/two/**/*.o', '/app/two/**/*.o/**'],
          oracle: undefined,
        },
      ],
    });
  });

  test('may each have a verifier in an environment of its own', () => {
    const found = set.harbor('task', {
      ...two,
      'task.toml':
        '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\nverifier.environment_mode = "separate"\n',
    });
    expect(taskOf(found).steps?.map(({ tests }) => tests.in)).toEqual(['same', 'fresh']);
  });

  test('leave the solution of the whole task an answer, if an image copies it', () => {
    const lines = 'echo a line of the solution that nobody should see in an image\n'.repeat(10);
    const solution = (end: string) => `${lines}echo ${end}\n`;
    const found = set.harbor('task', {
      ...two,
      'environment/docker-compose.yaml':
        'services:\n  main:\n    build: { context: .., dockerfile: environment/Dockerfile }\n',
      'solution/solve.sh': solution('one'),
      'steps/one/solution/solve.sh': solution('one'),
      'steps/two/solution/solve.sh': solution('two'),
    });
    const [planned] = planTasks({ path: found.place }, { except: [], images: {}, keys: undefined }).cases;
    const searched = planned?.local.answers?.map(({ sha256 }) => sha256);
    expect(searched).toContain(createHash('sha256').update(solution('two')).digest('hex'));
    expect(searched).toContain(createHash('sha256').update(solution('one')).digest('hex'));
  });

  test('may not contradict the verifier of the whole task', () => {
    const found = set.harbor('task', {
      ...two,
      'task.toml': `[verifier]
environment_mode = "shared"
environment.cpus = 1
[[steps]]
name = "one"
verifier.environment_mode = "separate"
`,
    });
    expect(issuesOf(found)).toEqual([
      'task.toml:3:1: verifier.environment: contradicts environment_mode = "shared"',
    ]);
  });

  test('are listed with another sandbox for tests if any of them has one', () => {
    set.harbor('task', {
      ...two,
      'task.toml':
        '[[steps]]\nname = "one"\n[[steps]]\nname = "two"\nverifier.environment_mode = "separate"\n',
    });
    const sandbox = { network: 'none' as const, hosts: [] };
    const { tasks } = listTasks(set.folder, {}, { except: [], images: {}, keys: undefined, sandbox });
    expect(tasks[0]).toMatchObject({ steps: 2, verifier: { mode: 'separate', reading: 'reward-files' } });
  });

  test('need a test.sh of their own or of the task', () => {
    const found = set.harbor('task', { ...two, 'tests/test.sh': null });
    expect(obstaclesOf(found)).toContain('no-tests steps/one/tests/test.sh:1:1');
    expect(obstaclesOf(found)).not.toContain('no-tests steps/two/tests/test.sh:1:1');
  });
});

test('.harborignore names what is not put into place', () => {
  const found = set.harbor('task', { '.harborignore': '# comment\n*.bin\n', 'tests/big.bin': 'x' });
  expect(taskOf(found).placed).toMatchObject([{ to: '/tests', ignored: ['*.bin'] }]);
});
